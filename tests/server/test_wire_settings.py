from __future__ import annotations

from dataclasses import replace

import pytest

from codec_core.errors import SettingError
from server.errors import NotOfferedError
from server.wire_settings import (
    DECODE_CLIP_SETTINGS,
    ENCODE_CLIP_SETTINGS,
    Offer,
    StreamSettings,
    parse_settings,
    quoted,
    unique_fields,
)

OFFER = Offer(default_levels=8, max_levels=32, codebook_entries=2048, frame_samples=1920, sample_rate_hz=24000, numerics="ggml")


def test_what_is_absent_takes_its_default():
    """ANCHORS A6, F4: levels are said, codes are binary."""
    expected = StreamSettings("encode", 8, "s16le", 24000, 1, "binary", "off", "ggml")
    assert parse_settings({}, OFFER, from_text=True) == parse_settings({}, OFFER, from_text=False) == expected


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
