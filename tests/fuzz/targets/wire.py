"""The stream protocol, both ends of it: what a client may send to a service, and a service to a client.

Input: lines. The first byte of each says what the rest is: ``?`` a query string, ``t`` a text message, ``b`` a binary one, all
to the service; ``c`` and ``d`` a text and a binary message to the client.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Final
from urllib.parse import parse_qsl

from codec_core.client.messages import parse_text
from codec_core.client.protocol import StreamProtocol
from codec_core.client.settings import StreamSettings as ClientSettings
from codec_core.errors import CodecError, CodeRangeError, InternalError, SettingError, UnavailableError
from server.errors import MessageTooBigError, NotOfferedError, PayloadError, ProtocolError, WrongKindError
from server.status_map import answer_for
from server.wire import Audio, Codes, Event, Hello, ServerWire
from server.wire_messages import SERVER_MESSAGES, error_text, pack_codes, pack_frame, server_text, unpack_frame
from server.wire_resume import Resume
from server.wire_settings import MODES, Offer, parse_settings
from tests.fuzz.materials import require_typed

COVERED: Final = (
    "server/wire.py",
    "server/wire_messages.py",
    "server/wire_resume.py",
    "server/wire_settings.py",
    "codec_core/client/messages.py",
    "codec_core/client/protocol.py",
)
DICTIONARY: Final = (
    *(f'"{name}"'.encode() for fields in SERVER_MESSAGES.values() for name in fields),
    b'{"type":"hello"',
    b'{"type":"resume","token":"',
    b'{"type":"codes","codes":[',
    b'{"type":"ack","sequence":',
    b'{"type":"ping","id":',
    b'{"type":"flush"}',
    b'{"type":"reset"}',
    b'{"type":"close"}',
    b"mode=decode",
    b"&levels=",
    b"&format=f32le",
    b"&codes=json",
    b"&sample_rate=",
    b"resume_token=",
    b"&last_sequence=-1",
    b"&epoch=",
    b"%00",
    b"\\ud800",
    b"NaN",
    b"1e400",
    b"-0",
    b"\n?",
    b"\nt",
    b"\nb",
    b"\nc",
    b"\nd",
)
OFFER: Final = Offer(8, 32, 2048, 1920, 24_000, "kyutai", free_pace=True)
MAX_MESSAGE_BYTES: Final = 4096
CLOSE_REASON_MAX_BYTES: Final = 123
REFUSALS: Final = (
    CodeRangeError,
    MessageTooBigError,
    NotOfferedError,
    PayloadError,
    ProtocolError,
    SettingError,
    WrongKindError,
)


def one_input(data: bytes) -> None:
    lines = data.split(b"\n")
    _to_the_service([line for line in lines if line[:1] in (b"?", b"t", b"b")])
    _to_the_client([line for line in lines if line[:1] in (b"c", b"d")])


def _to_the_service(lines: list[bytes]) -> None:
    wire = ServerWire(OFFER, MAX_MESSAGE_BYTES)
    for line in lines:
        try:
            event = _received(wire, line[:1], line[1:])
        except REFUSALS as error:
            require_typed(error)
            _require_sendable(error)
            return
        if isinstance(event, Resume):
            wire.go_on(parse_settings({}, OFFER, from_text=False))
        _require_legal(event)


def _received(wire: ServerWire, kind: bytes, content: bytes) -> Event | None:
    if kind == b"?":
        # As starlette reads a query.
        return wire.receive_query(parse_qsl(content.decode("latin-1"), keep_blank_values=True))
    if kind == b"t":
        return wire.receive_text(content.decode("utf-8", "replace"))
    return wire.receive_binary(content)


def _require_legal(event: Event | None) -> None:
    if isinstance(event, Hello):
        settings = event.settings
        assert settings.mode in MODES
        assert 1 <= settings.levels <= OFFER.max_levels
        assert 8_000 <= settings.sample_rate <= 96_000
    if isinstance(event, Codes):
        assert all(0 <= code < OFFER.codebook_entries for frame in event.frames for code in frame)
    if isinstance(event, Audio):
        assert len(event.data) <= MAX_MESSAGE_BYTES


def _require_sendable(error: CodecError) -> None:
    """The refusal has a row in the table, fits a close frame, and the client understands it."""
    answer_for(error)
    assert len(error.code.encode()) <= CLOSE_REASON_MAX_BYTES
    text = error_text(error)
    assert len(text) < 4096
    refused = parse_text(text)
    assert refused is not None
    assert refused.error.code == error.code


def _to_the_client(lines: list[bytes]) -> None:
    protocol = StreamProtocol(ClientSettings(), resume=True, max_held_bytes=1 << 16)
    protocol.opening()
    for number, line in enumerate(lines):
        message = line[1:] if line[:1] == b"d" else line[1:].decode("utf-8", "replace")
        if isinstance(message, bytes):
            with contextlib.suppress(PayloadError):
                unpack_frame(message)
        try:
            protocol.receive(message, float(number))
        except (UnavailableError, InternalError):
            # The latter says that the service broke its promise, and ends the stream as well.
            return
        if protocol.ack_is_due:
            json.loads(protocol.ack())
        json.loads(protocol.opening())


def _ready(**changes: object) -> bytes:
    fields = {
        "protocol": 1,
        "session": "s",
        "model": {"sha256": "x", "numerics": "kyutai"},
        "settings": {"levels": 2},
        "codec": {"sample_rate": 24_000, "frame_samples": 1920, "codebook_entries": 2048},
        "credit_frames": 25,
        "limits": {"max_message_bytes": 65_536},
        "resume_token": "t",
        "epoch": 0,
        "position": 0,
        "flushes": 0,
    }
    return b"c" + server_text("ready", **fields | changes).encode()


QUERIES: Final = (
    "",
    "levels=4",
    "mode=decode&levels=2&codes=json",
    "mode=echo&echo_codes=on&format=mulaw&channels=2&sample_rate=8000",
    "resume_token=abc&last_sequence=-1&epoch=0",
    "pace=free&stats=on&numerics=kyutai",
    "colour=red",
    "levels=1&levels=2",
    "format=opus",
    "channels=2&mode=decode",
    "resume_token=a&levels=1",
    "resume_token=a&last_sequence=9999999999",
    "levels=0",
    "echo_codes=on",
    "numerics=x",
    "pace=x",
    "resume_token=",
    "resume_token=a&epoch=-1",
)
BODIES: Final = (
    '{"type":"ping","id":1}',
    '{"type":"ping","id":"a"}',
    '{"type":"ping","id":[]}',
    '{"type":"ack","sequence":3,"epoch":1}',
    '{"type":"ack","sequence":-1}',
    '{"type":"flush","x":1}',
    '{"type":5}',
    "[]",
    "{",
    '{"a":1,"a":2}',
    '{"type":NaN}',
    '{"type":"ack"}',
    '{"type":null}',
    '{"type":true}',
    '{"type":{}}',
    '{"type":"' + "x" * 5000 + '"}',
)


def seeds() -> Iterator[bytes]:
    yield from (f"?{query}".encode() for query in QUERIES)
    hello, decode, json_codes = b't{"type":"hello","levels":2}', b"?mode=decode&levels=2", b"?mode=decode&levels=2&codes=json"
    texts = ("flush", "reset", "close", "stop", "hello", "resume")
    yield from (hello + b'\nt{"type":"' + kind.encode() + b'"}\nt{"type":"ping"}' for kind in texts)
    yield from (hello + b"\nt" + body.encode() for body in BODIES)
    yield from (
        b"t" + body
        for body in (
            b'{"type":"flush"}',
            b'{"type":"resume","token":"t","last_sequence":0}',
            b"\xff\xfe",
            b'{"type":"hello","levels":"8"}',
        )
    )
    yield hello + b"\nb" + bytes(100)
    yield b"b" + bytes(10)
    yield decode + b"\nb\x01\x00\x02\x00\x03\x00\x04\x00\nt" + b'{"type":"codes","codes":[1,2]}'
    yield from (decode + b"\nb" + payload for payload in (b"\x01\x00\x02", b"\xff\xff\x00\x00", bytes(5000)))
    lists = ("[1,2]", "[1]", "[1,-1]", "[1,true]", "[1,2048]", "{}", '["a","b"]')
    yield from (json_codes + b'\nt{"type":"codes","codes":' + codes.encode() + b"}" for codes in lists)
    yield json_codes + b"\nb" + bytes(4)
    yield from _from_a_service()


FLUSHED: Final = {
    "frames": 1,
    "position": 1920,
    "samples": 1920,
    "padded_samples": 0,
    "received_samples": 1920,
    "sent_samples": 0,
    "flushes": 1,
}
FROM_A_SERVICE: Final = (
    b'c{"type":"reset_done","epoch":1}',
    b'c{"type":"checkpoint","position":0,"epoch":0}',
    b'c{"type":"goaway","time_left_ms":5}',
    b'c{"type":"warning","code":"lagging","message":"m"}',
    b'c{"type":"pong"}',
    b"c[]",
    b"c{",
    b'c{"type":"flushed"}',
    b"c" + server_text("flushed", **FLUSHED).encode(),
    b'c{"type":"error","code":"capacity","retry_after_ms":5}',
    b'c{"type":"error"}',
    b"d" + pack_frame(2, 1, 0, 0, bytes(8)),
    b"d" + pack_frame(3, 1, 0, 0, b""),
    b"dshort",
    b"d\x02" + bytes(20),
    b"d" + pack_codes(5, 0, [1]),
)


def _from_a_service() -> Iterator[bytes]:
    ready, frame = _ready(), b"d" + pack_codes(0, 0, [1, 2])
    yield from (b"\n".join((ready, frame, message, ready)) for message in FROM_A_SERVICE)
    yield frame
    yield b"\n".join((ready, *(b"d" + pack_codes(number, 0, [1, 2]) for number in range(10)), frame))
    yield from (
        _ready(**{name: value}) for name in ("settings", "codec", "credit_frames", "epoch") for value in (None, -1, "x", {})
    )
    yield ready + b"\n" + _ready(model={"sha256": "other"})
    yield ready + b"\n" + _ready(epoch=3, position=99_999)
