"""``docs/protocol.md`` and the code say the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from codec_core.codes_json import MOST_FIELDS, PIECE_CHARS
from codec_core.errors import error_classes
from server import wire, wire_settings
from server.access_token import SCOPES
from server.media import AUDIO_IN_MEDIA, CODES_MEDIA, SOUND_MEDIA
from server.settings import Settings
from server.status_map import STATUS_MAP
from server.wire_messages import HEADER, KIND_CODES, KIND_OPUS, KIND_PCM, PROTOCOL_VERSION, SERVER_MESSAGES, SUBPROTOCOL
from server.wire_opus import MESSAGE_MOST_PACKETS, MESSAGE_MOST_S

DOCUMENT = Path(__file__).parents[2] / "docs" / "protocol.md"
TEXT = DOCUMENT.read_text(encoding="utf-8")


def table(first_column: str, occurrence: int = 0) -> list[list[str]]:
    """Return the rows of a table, found by the heading of its first column."""
    blocks = re.findall(rf"^\| {re.escape(first_column)} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", TEXT, re.MULTILINE)
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in blocks[occurrence].splitlines()]


def ticked(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_settings():
    rows = {ticked(row[0])[0]: row[1:3] for row in table("setting")}
    assert tuple(rows) == wire_settings.STREAM_SETTINGS
    words = {
        "mode": wire_settings.MODES,
        "format": (*wire_settings.FORMATS, *wire_settings.OPUS_FORMATS),
        "codes": wire_settings.CODES_FORMS,
        "echo_codes": wire_settings.ECHO_CODES,
        "pace": wire_settings.PACES,
        "stats": wire_settings.STATS,
    }
    for name, legal in words.items():
        assert tuple(ticked(rows[name][0])) == legal
        assert ticked(rows[name][1]) == [legal[0]]
    assert rows["sample_rate"][0] == "{} .. {}".format(*wire_settings.SAMPLE_RATE_RANGE_HZ)
    assert rows["channels"][0] == "1, 2" == ", ".join(str(n + 1) for n in range(wire_settings.CHANNELS_MAX))
    assert rows["pre_skip"] == ["{} .. {}".format(*wire_settings.PRE_SKIP_RANGE), str(wire_settings.PRE_SKIP_DEFAULT)]
    assert f"more than {MESSAGE_MOST_S} s of audio" in TEXT
    assert f"more than {MESSAGE_MOST_PACKETS:,} packets" in " ".join(TEXT.split())


def test_client_messages():
    rows = {ticked(row[0])[0]: row[1:4] for row in table("type")}
    assert set(rows) == set(wire.CLIENT_MESSAGES)
    for kind, (legal, required, optional) in rows.items():
        spec = wire.CLIENT_MESSAGES[kind]
        assert (legal, tuple(ticked(required)), tuple(ticked(optional))) == (spec.legal_in.value, spec.required, spec.optional)


def test_server_messages():
    rows = {ticked(row[0])[0]: tuple(ticked(row[1])) for row in table("type", occurrence=1)}
    assert rows == SERVER_MESSAGES


def test_header():
    sizes = {"u8": 1, "u16": 2, "u32": 4, "u64": 8}
    rows = table("bytes")
    assert sum(sizes[row[1]] for row in rows if row[1]) == HEADER.size == int(rows[-1][0].split()[0])
    assert rows[0][3] == str(PROTOCOL_VERSION)
    assert rows[1][3] == f"{KIND_CODES} codes, {KIND_PCM} PCM, {KIND_OPUS} Opus"
    assert f"`{SUBPROTOCOL}`" in TEXT


def test_errors():
    """ANCHORS E2, F1: the table of reasons is written down."""
    rows = {ticked(row[0])[0]: (int(row[1]), int(row[2])) for row in table("code")}
    assert rows == {code: (answer.http_status, answer.close_code) for code, answer in STATUS_MAP.items()}
    for code in re.findall(r"\(`([a-z_]+)`[,)]", TEXT):
        assert code in error_classes() or code in Settings.model_fields, code


@pytest.mark.parametrize("occurrence", [0, 1])
def test_limits_and_their_defaults(occurrence):
    for row in table("limit", occurrence):
        setting, refusal = ticked(row[2])[0], ticked(row[3])[0]
        assert int(row[1].split()[0]) == Settings.model_fields[setting].default
        assert refusal in STATUS_MAP


def test_media():
    assert [ticked(row[0])[0] for row in table("codes as")] == list(CODES_MEDIA)
    made = {media for row in table("sound as") for media in ticked(row[0])}
    assert made == set(SOUND_MEDIA)
    section = TEXT[TEXT.index("| sound as |") : TEXT.index("Query of encode")]
    assert {media for media in ticked(section) if "/" in media} == set(AUDIO_IN_MEDIA)


def test_scopes():
    assert {ticked(row[0])[0]: tuple(ticked(row[1])) for row in table("scope")} == SCOPES


def test_limits_of_json():
    assert f"at most {MOST_FIELDS} in all" in TEXT
    assert f"at most {PIECE_CHARS} characters" in TEXT


@pytest.mark.parametrize("name", ["ready", "flushed"])
def test_fields_are_explained(name):
    section = TEXT[TEXT.index(f"\n`{name}`") :]
    for field in SERVER_MESSAGES[name]:
        assert f"`{field}`" in section
