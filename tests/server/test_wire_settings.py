from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from codec_core.errors import SettingError
from server.errors import NotOfferedError
from server.wire_settings import (
    DECODE_CLIP_SETTINGS,
    ENCODE_CLIP_SETTINGS,
    MODES,
    Offer,
    StreamSettings,
    parse_settings,
    quoted,
    unique_fields,
)
from server.wire_talk import LanguageOffer

OFFER = Offer(default_levels=8, max_levels=32, codebook_entries=2048, frame_samples=1920, sample_rate_hz=24000, numerics="ggml")


def test_what_is_absent_takes_its_default():
    """ANCHORS A6, F4: levels are said, codes are binary."""
    expected = StreamSettings("encode", 8, "s16le", 24000, 1, "binary", "off", "ggml")
    assert parse_settings({}, OFFER, from_text=True) == parse_settings({}, OFFER, from_text=False) == expected


TALKS = replace(OFFER, language=LanguageOffer(16, 8, 0.7, 25, 0.8, 250))
WRITES = replace(OFFER, language=LanguageOffer(32, 0, 0.0, 25, 0.0, 0))


def test_a_language_model_brings_its_own_defaults():
    settings = parse_settings({"mode": "talk"}, TALKS, from_text=True)
    assert (settings.levels, settings.seed) == (16, 0)
    assert (settings.text_temperature, settings.text_top_k, settings.temperature, settings.top_k) == (0.7, 25, 0.8, 250)
    fields = {"mode": "talk", "levels": 16, "seed": 4_294_967_295, "text_temperature": 0, "temperature": 1.25, "top_k": 0}
    text = {name: str(value) for name, value in fields.items()}
    settings = parse_settings(fields, TALKS, from_text=False)
    assert settings == parse_settings(text, TALKS, from_text=True)
    assert (settings.seed, settings.text_temperature, settings.temperature, settings.top_k) == (4_294_967_295, 0.0, 1.25, 0)
    assert parse_settings(asdict(settings), TALKS, from_text=False) == settings


@pytest.mark.parametrize(
    ("offer", "fields"),
    [
        (TALKS, {"levels": 8}),
        (TALKS, {"temperature": -1}),
        (TALKS, {"temperature": True}),
        (TALKS, {"temperature": "0.5"}),
        (TALKS, {"text_temperature": 0.0005}),
        (TALKS, {"text_temperature": float("inf")}),
        (TALKS, {"top_k": 65_536}),
        (TALKS, {"seed": 1 << 32}),
        (TALKS, {"seed": 1.0}),
        (WRITES, {"temperature": 0.5}),
        (WRITES, {"top_k": 1}),
    ],
)
def test_how_a_language_model_may_not_be_told_to_choose(offer, fields):
    (name,) = fields
    with pytest.raises(SettingError, match=name):
        parse_settings({"mode": "talk", **fields}, offer, from_text=False)


@pytest.mark.parametrize("name", ["seed", "text_temperature", "text_top_k", "temperature", "top_k"])
def test_other_modes_choose_nothing(name):
    for offer in (OFFER, TALKS):
        assert getattr(parse_settings({name: 0}, offer, from_text=False), name) == 0
        with pytest.raises(SettingError, match=name):
            parse_settings({name: 1}, offer, from_text=False)


def test_there_is_nobody_to_talk_to_without_a_language_model():
    with pytest.raises(NotOfferedError, match="--language-model"):
        parse_settings({"mode": "talk"}, OFFER, from_text=False)
    assert (OFFER.modes, TALKS.modes) == (MODES[:-1], MODES)
    assert OFFER.parts_of("echo") == {"encoder", "decoder"}
    assert TALKS.parts_of("talk") == {"encoder", "language", "decoder"}
    assert WRITES.parts_of("talk") == {"encoder", "language"}


def test_query_and_hello_mean_the_same():
    fields = {
        "mode": "echo",
        "levels": 32,
        "format": "mulaw",
        "sample_rate": 8000,
        "channels": 2,
        "codes": "json",
        "echo_codes": "on",
        "numerics": "ggml",
        "pace": "real",
        "stats": "on",
    }
    text = {name: str(value) for name, value in fields.items()}
    assert parse_settings(fields, OFFER, from_text=False) == parse_settings(text, OFFER, from_text=True)


@pytest.mark.parametrize(("name", "low", "high"), [("levels", 1, 32), ("sample_rate", 8000, 96000), ("channels", 1, 2)])
def test_numbers_are_legal_up_to_their_bounds(name, low, high):
    for value in (low, high):
        assert getattr(parse_settings({name: value}, OFFER, from_text=False), name) == value
    for value in (low - 1, high + 1, str(low), float(low), True, None, [low]):
        with pytest.raises(SettingError, match=name):
            parse_settings({name: value}, OFFER, from_text=False)
    for text in ("", "-1", "+1", " 1", "1 ", "1.0", "0x8", "٨", "9" * 400, str(high + 1)):
        with pytest.raises(SettingError, match=name):
            parse_settings({name: text}, OFFER, from_text=True)


@pytest.mark.parametrize("name", ["mode", "format", "codes", "echo_codes", "numerics", "pace", "stats"])
def test_words_are_taken_from_their_list_only(name):
    for value in ("", "ENCODE", "binary ", 1, None, ["encode"]):
        with pytest.raises(SettingError, match=name):
            parse_settings({name: value}, OFFER, from_text=False)


@pytest.mark.parametrize("mode", ["encode", "decode"])
def test_codes_beside_an_echo_need_an_echo(mode):
    assert parse_settings({"mode": mode, "echo_codes": "off"}, OFFER, from_text=True).echo_codes == "off"
    with pytest.raises(SettingError, match="echo_codes"):
        parse_settings({"mode": mode, "echo_codes": "on"}, OFFER, from_text=True)


def test_names_of_other_places_are_unknown():
    with pytest.raises(SettingError, match="sample_rate"):
        parse_settings({"sample_rate": "24000"}, OFFER, allowed=DECODE_CLIP_SETTINGS, from_text=True)


def test_what_the_protocol_knows_and_this_build_does_not_is_said():
    with pytest.raises(NotOfferedError, match=r": found '.+', expected ."):
        parse_settings({"format": "opus"}, OFFER, from_text=True)


def test_opus_has_a_rate_and_one_channel_of_its_own():
    offer = replace(OFFER, opus=True)
    raw = parse_settings({"format": "opus-packets"}, offer, from_text=True)
    assert (raw.sample_rate, raw.channels, raw.pre_skip, raw.is_opus) == (48_000, 1, 312, True)
    assert parse_settings({"format": "opus-packets", "pre_skip": "0"}, offer, from_text=True).pre_skip == 0
    assert parse_settings({"format": "opus"}, offer, from_text=True).pre_skip == 0
    assert parse_settings({"format": "opus-packets", "mode": "decode"}, offer, from_text=True).pre_skip == 0
    for other in ({"sample_rate": "24000"}, {"channels": "2"}, {"pre_skip": "312"}):
        with pytest.raises(SettingError, match=next(iter(other))):
            parse_settings({"format": "opus", **other}, offer, from_text=True)
    with pytest.raises(NotOfferedError, match="audio/ogg"):
        parse_settings({"format": "opus"}, offer, allowed=ENCODE_CLIP_SETTINGS, from_text=True)


def test_any_pace_is_for_the_operator_to_allow():
    with pytest.raises(SettingError, match="allows no other"):
        parse_settings({"pace": "free"}, OFFER, from_text=True)
    assert parse_settings({"pace": "free"}, replace(OFFER, free_pace=True), from_text=True).pace == "free"


def test_a_name_twice_is_refused():
    assert unique_fields([("a", 1), ("b", 2)]) == {"a": 1, "b": 2}
    with pytest.raises(SettingError, match="twice"):
        unique_fields([("a", 1), ("a", 1)])


def test_quotes_are_short_and_printable():
    assert quoted("a\n\u2028") == r"'a\n\u2028'"
    assert len(quoted("x" * 10_000)) < 80


@pytest.mark.parametrize(
    ("value", "words"),
    [(None, "null"), (True, "true"), (False, "false"), ([None] * 3, "an array of 3"), ({}, "an object of 0"), (1.5, "1.5")],
)
def test_quotes_are_in_the_words_of_json(value, words):
    assert quoted(value) == words
