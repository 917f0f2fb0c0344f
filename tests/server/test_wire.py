"""The wire as a table: what comes in, in which state, becomes which event or which refusal."""

from __future__ import annotations

import contextlib
import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codec_core.errors import CodecError, CodeRangeError, SettingError
from server.errors import MessageTooBigError, NotOfferedError, PayloadError, ProtocolError, WrongKindError
from server.wire import CLIENT_MESSAGES, Ack, Audio, Close, Codes, Flush, Hello, Phase, Ping, Reset, ServerWire
from server.wire_resume import Resume
from server.wire_settings import MODES, STREAM_SETTINGS, Offer

OFFER = Offer(
    default_levels=8, max_levels=32, codebook_entries=2048, frame_samples=1920, sample_rate_hz=24000, numerics="kyutai"
)
MAX_BYTES = 1000


def opened(query: str = "mode=encode") -> ServerWire:
    wire = ServerWire(OFFER, MAX_BYTES)
    pairs = [tuple(part.split("=")) for part in query.split("&") if part]
    assert isinstance(wire.receive_query(pairs), Hello)
    return wire


def test_an_empty_query_waits_for_hello():
    wire = ServerWire(OFFER, MAX_BYTES)
    assert wire.receive_query([]) is None
    assert wire.phase is Phase.AWAITING_HELLO
    hello = wire.receive_text('{"type":"hello","levels":3}')
    assert isinstance(hello, Hello)
    assert hello.settings.levels == 3
    assert wire.phase is Phase.OPEN


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ('{"type":"flush"}', Flush()),
        ('{"type":"reset"}', Reset()),
        ('{"type":"ping"}', Ping(None)),
        ('{"type":"ping","id":null}', Ping(None)),
        ('{"type":"ping","id":7}', Ping(7)),
        ('{"id":"x","type":"ping"}', Ping("x")),
        ('{"type":"ack","sequence":4294967295}', Ack(4294967295)),
        ('{"type":"ack","sequence":3,"epoch":2}', Ack(3, 2)),
        ('{"type":"close"}', Close()),
    ],
)
def test_text_messages(text, event):
    assert opened().receive_text(text) == event


def test_a_resume_is_the_same_as_a_message_and_as_a_query():
    for epoch in (None, 3):
        wire = ServerWire(OFFER, MAX_BYTES)
        fields = {"last_sequence": 7} | ({} if epoch is None else {"epoch": epoch})
        by_query = wire.receive_query([("resume_token", "t"), *((name, str(value)) for name, value in fields.items())])
        assert wire.receive_text(json.dumps({"type": "resume", "token": "t", **fields})) == by_query == Resume("t", 7, epoch)
        assert wire.phase is Phase.AWAITING_HELLO
        wire.go_on(opened("levels=2").settings)
        assert wire.receive_binary(b"ab") == Audio(b"ab")
    assert ServerWire(OFFER, MAX_BYTES).receive_query([("resume_token", "t")]) == Resume("t", -1)


@pytest.mark.parametrize(
    "fields",
    [
        {"token": "t", "last_sequence": -2},
        {"token": "t", "last_sequence": 1.0},
        {"token": "t", "last_sequence": 1 << 32},
        {"token": "t", "last_sequence": True},
        {"token": "t", "last_sequence": 0, "epoch": -1},
        {"token": "t", "last_sequence": 0, "epoch": None},
        {"token": "t", "last_sequence": 0, "levels": 3},
        {"token": "", "last_sequence": 0},
        {"token": "t" * 1025, "last_sequence": 0},
        {"token": 7, "last_sequence": 0},
        {"token": "t"},
        {"last_sequence": 0},
    ],
)
def test_what_is_no_resume_is_refused(fields):
    with pytest.raises(ProtocolError):
        ServerWire(OFFER, MAX_BYTES * 2).receive_text(json.dumps({"type": "resume", **fields}))


@pytest.mark.parametrize("extra", [("last_sequence", "1.5"), ("last_sequence", "--1"), ("epoch", "x"), ("levels", "3")])
def test_what_is_no_query_of_a_resume_is_refused(extra):
    with pytest.raises(ProtocolError):
        ServerWire(OFFER, MAX_BYTES).receive_query([("resume_token", "t"), extra])


def test_binary_messages():
    assert opened().receive_binary(b"") == Audio(b"")
    assert opened("mode=echo").receive_binary(b"abc") == Audio(b"abc")
    assert opened("mode=decode&levels=2").receive_binary(struct.pack("<4H", 1, 2, 3, 2047)) == Codes(((1, 2), (3, 2047)))
    assert opened("mode=decode&levels=2").receive_binary(b"") == Codes(())
    assert opened("mode=decode&levels=2&codes=json").receive_text('{"type":"codes","codes":[0,2047]}') == Codes(((0, 2047),))


@pytest.mark.parametrize(
    ("query", "message", "refusal"),
    [
        ("mode=encode", "{", ProtocolError),
        ("mode=encode", "3", ProtocolError),
        ("mode=encode", '{"type":"flush"} {}', ProtocolError),
        ("mode=encode", '{"type":"flush","x":1}', ProtocolError),
        ("mode=encode", '{"type":"ack"}', ProtocolError),
        ("mode=encode", '{"type":"ack","sequence":4294967296}', ProtocolError),
        ("mode=encode", '{"type":"ack","sequence":1.0}', ProtocolError),
        ("mode=encode", '{"type":"ack","sequence":true}', ProtocolError),
        ("mode=encode", '{"type":"ping","id":1.5}', ProtocolError),
        ("mode=encode", '{"type":"ping","id":' + "9" * 30 + "}", ProtocolError),
        ("mode=encode", '{"type":"ping","id":Infinity}', ProtocolError),
        ("mode=encode", '{"type":"hello"}', ProtocolError),
        ("mode=encode", '{"type":"ready"}', ProtocolError),
        ("mode=encode", '{"type":"resume","token":"t","last_sequence":-1}', ProtocolError),
        ("mode=encode", '{"type":"ack","sequence":1,"epoch":-1}', ProtocolError),
        ("mode=encode", '{"type":"codes","codes":[1]}', WrongKindError),
        ("mode=decode&codes=json&levels=2", b"\0\0\0\0", WrongKindError),
        ("mode=decode&codes=json&levels=2", '{"type":"codes","codes":[1,2.0]}', PayloadError),
        ("mode=decode&codes=json&levels=2", '{"type":"codes","codes":"12"}', PayloadError),
        ("mode=decode&codes=json&levels=2", '{"type":"codes","codes":[1,2048]}', CodeRangeError),
        ("mode=decode&levels=2", b"\0\0\0", PayloadError),
        ("mode=decode&levels=2", struct.pack("<2H", 0, 2048), CodeRangeError),
        ("mode=encode", bytes(MAX_BYTES + 1), MessageTooBigError),
        ("mode=encode", '{"type":"ping","id":"' + "ä" * MAX_BYTES, MessageTooBigError),
    ],
)
def test_refusals(query, message, refusal):
    wire = opened(query)
    with pytest.raises(refusal):
        wire.receive_text(message) if isinstance(message, str) else wire.receive_binary(message)


@pytest.mark.parametrize(
    ("query", "text", "says"),
    [
        ("mode=encode", "[]", "text message: found an array of 0, expected one JSON object"),
        (
            "mode=encode",
            '{"type":null}',
            "type: found null, expected hello | resume | codes | flush | reset | ping | ack | close",
        ),
        (
            "mode=encode",
            '{"type":"resume"}',
            "resume: found in state 'open', expected binary message | codes | flush | reset | ping | ack | close",
        ),
        ("mode=encode", '{"type":"flush","x":1}', "flush.'x': found an unknown field, expected type"),
        ("mode=encode", '{"type":"ping","x":1}', "ping.'x': found an unknown field, expected type | id"),
        (
            "mode=encode",
            '{"type":"ping","id":{}}',
            "ping.id: found an object of 0, expected a whole number, or text of at most 64",
        ),
        (
            "mode=encode",
            '{"type":"hello"}',
            "hello: found in state 'open', expected binary message | codes | flush | reset | ping | ack | close",
        ),
        (
            "mode=decode&codes=json&levels=2",
            '{"type":"codes","codes":[1,true]}',
            "codes.codes[level 1]: found true, expected a whole number",
        ),
    ],
)
def test_refusals_say_what_was_found_and_what_is_legal(query, text, says):
    with pytest.raises(CodecError) as refusal:
        opened(query).receive_text(text)
    assert str(refusal.value) == says


def test_a_message_exactly_as_long_as_allowed_is_taken():
    assert opened().receive_binary(bytes(MAX_BYTES)) == Audio(bytes(MAX_BYTES))


@pytest.mark.parametrize("kind", [kind for kind, spec in CLIENT_MESSAGES.items() if spec.legal_in is Phase.OPEN])
def test_nothing_but_hello_is_legal_before_hello(kind):
    wire = ServerWire(OFFER, MAX_BYTES)
    with pytest.raises(ProtocolError, match=r"in state 'awaiting hello', expected hello \| resume$"):
        wire.receive_text(json.dumps({"type": kind}))
    with pytest.raises(ProtocolError, match="awaiting hello"):
        wire.receive_binary(b"")


def test_nothing_is_legal_after_close():
    wire = opened()
    wire.receive_text('{"type":"close"}')
    for kind in CLIENT_MESSAGES:
        with pytest.raises(ProtocolError, match="closed"):
            wire.receive_text(json.dumps({"type": kind}))
    with pytest.raises(ProtocolError, match="closed"):
        wire.receive_binary(b"")


def test_a_code_out_of_range_is_named_by_frame_and_level():
    """ANCHORS A7: found before the engine sees it."""
    with pytest.raises(CodeRangeError) as refusal:
        opened("mode=decode&levels=3").receive_binary(struct.pack("<6H", 0, 1, 2, 3, 4, 9999))
    error = refusal.value
    assert (error.subject, error.found, error.expected) == ("codes[frame 1][level 2]", "9999", "0 .. 2047")


def test_a_refused_hello_leaves_the_door_open():
    wire = ServerWire(OFFER, MAX_BYTES)
    with pytest.raises(SettingError):
        wire.receive_text('{"type":"hello","levels":0}')
    assert wire.phase is Phase.AWAITING_HELLO


def event_or_refusal(wire, message):
    try:
        return wire.receive_text(message) if isinstance(message, str) else wire.receive_binary(message)
    except CodecError as error:
        return error


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
field_names = st.sampled_from([*STREAM_SETTINGS, "type", "id", "sequence", "codes", "token", "x"])
messages = st.dictionaries(field_names, json_values | st.sampled_from([*CLIENT_MESSAGES, *MODES, "resume"]), max_size=5)


@given(st.lists(st.text(max_size=40) | st.binary(max_size=40) | messages.map(json.dumps), max_size=8), st.booleans())
def test_whatever_comes_only_errors_of_the_tree_leave(sequence, by_query):
    wire = ServerWire(OFFER, MAX_BYTES)
    if by_query:
        wire.receive_query([("mode", "decode"), ("levels", "2")])
    for message in sequence:
        outcome = event_or_refusal(wire, message)
        assert isinstance(outcome, Hello | Resume | Audio | Codes | Flush | Reset | Ping | Ack | Close | CodecError)
        assert not isinstance(outcome, CodecError) or len(str(outcome)) < 600


@given(st.lists(st.tuples(st.text(max_size=12), st.text(max_size=12)), max_size=5))
def test_whatever_query_comes_only_errors_of_the_tree_leave(pairs):
    with contextlib.suppress(SettingError, NotOfferedError, ProtocolError):
        assert (ServerWire(OFFER, MAX_BYTES).receive_query(pairs) is None) == (not pairs)
