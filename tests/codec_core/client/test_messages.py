from __future__ import annotations

import json
import struct

import numpy as np
import pytest

from codec_core.client.messages import (
    HEADER,
    Checkpoint,
    Flushed,
    Frame,
    GoAway,
    Ready,
    Refused,
    ResetDone,
    Warned,
    parse_binary,
    parse_text,
)
from codec_core.errors import CodeRangeError, UnavailableError
from server import wire_messages
from server.wire_messages import KIND_PCM, pack_codes, pack_frame, server_text


def test_frames_of_the_service_are_read():
    frame = parse_binary(pack_codes(3, 5760, [1, 2047, 0]), "s16le")
    assert (frame.sequence, frame.position, frame.pcm) == (3, 5760, None)
    assert frame.codes is not None
    assert frame.codes.dtype == np.int32
    assert frame.codes.tolist() == [1, 2047, 0]
    sound = parse_binary(pack_frame(KIND_PCM, 1, 0, 0, np.array([-32768, 16384], "<i2").tobytes()), "s16le")
    assert sound.pcm is not None
    assert sound.pcm.tolist() == [-1, 0.5]
    exact = np.array([0.1, -1.7], "<f4")
    assert np.array_equal(parse_binary(pack_frame(KIND_PCM, 1, 0, 0, exact.tobytes()), "f32le").pcm, exact)
    assert HEADER.format == wire_messages.HEADER.format


def test_texts_of_the_service_are_read(wire):
    assert isinstance(parse_text(wire.ready()), Ready)
    assert parse_text(server_text("goaway", code="draining", time_left_ms=7)) == GoAway(7, None)
    assert parse_text(server_text("reset_done", epoch=1)) == ResetDone(1)
    assert parse_text(server_text("warning", code="lagging", message="so")) == Warned("lagging", "so")
    assert parse_text('{"type":"checkpoint","position":3840,"sequence":2,"epoch":0}') == Checkpoint(3840, 0)
    assert parse_text(wire.flushed(2)) == Flushed(2, 3840, 0, 3840, 3840, 1)
    refused = parse_text('{"type":"error","code":"code_range","subject":"c"}')
    assert isinstance(refused, Refused)
    assert isinstance(refused.error, CodeRangeError)
    for unknown in ('{"type":"stats","lag":1}', '{"type":"pong","id":null}', '{"type":null}', '{"type":["ready"]}'):
        assert parse_text(unknown) is None


def test_ready_says_what_can_be_resumed(wire):
    plain, resumable = parse_text(wire.ready(resume_token=None)), parse_text(wire.ready(epoch=2, position=9, resumed=True))
    assert isinstance(plain, Ready)
    assert isinstance(resumable, Ready)
    assert (plain.resume_token, plain.levels, plain.codebook_entries) == (None, 2, 32)
    assert (resumable.resume_token, resumable.epoch, resumable.position, resumable.resumed) == ("t1", 2, 9, True)


def test_what_a_language_model_writes_is_a_frame(wire):
    assert parse_text(server_text("text", sequence=4, position=3840, token=17, text=" so")) == Frame(
        4, 3840, token=17, text=" so"
    )
    ready = parse_text(wire.ready(language_model={"name": "m", "sha256": "00"}))
    assert isinstance(ready, Ready)
    assert ready.language_model == {"name": "m", "sha256": "00"}


FOREIGN_TEXTS = (
    *("", "{", "[]", "7", '"ready"', "[" * 100_000),
    *('{"type":"ready"}', '{"type":"goaway"}', '{"type":"goaway","time_left_ms":1e99}', '{"type":"flushed","frames":1}'),
    *('{"type":"text","sequence":1,"position":0,"token":1}', '{"type":"text","sequence":1,"position":0,"token":-1,"text":""}'),
    *('{"type":"checkpoint","position":-1}', '{"type":"checkpoint","position":true}'),
)


@pytest.mark.parametrize("text", FOREIGN_TEXTS)
def test_foreign_texts_are_refused(text):
    with pytest.raises(UnavailableError, match=r"mimi\.v1"):
        parse_text(text)


def test_ready_with_any_field_damaged_is_refused(wire):
    whole = json.loads(wire.ready())
    for name in ("settings", "codec", "limits", "model", "credit_frames", "epoch", "position"):
        for value in (None, "x", [], -1):
            with pytest.raises(UnavailableError):
                parse_text(json.dumps(whole | {name: value}))


def test_foreign_frames_are_refused(rng: np.random.Generator):
    good = pack_codes(0, 0, [1, 2])
    for bad in (b"", good[:15], good[:-1], good + b"\0", b"\2" + good[1:], good[:1] + b"\7" + good[2:]):
        with pytest.raises(UnavailableError):
            parse_binary(bad, "s16le")
    for _ in range(500):
        message = struct.pack("<BB", 1, int(rng.integers(1, 3))) + rng.bytes(int(rng.integers(0, 40)))
        try:
            assert isinstance(parse_binary(message, "f32le"), Frame)
        except UnavailableError:
            continue
