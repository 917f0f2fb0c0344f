"""The client's protocol without a socket: what it says, what it believes, what it drops."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codec_core.client import Flushed, Frame, Ready, StreamSettings
from codec_core.client.errors import refusal
from codec_core.client.messages import Event, ResetDone
from codec_core.client.protocol import ACK_FRAMES, StreamProtocol
from codec_core.errors import CodecError, InternalError, UnavailableError

FRAME = bytes(3840)


class Played:
    """A protocol with somebody who reads its mind."""

    def __init__(self, *, resume: bool = True) -> None:
        self.protocol = StreamProtocol(StreamSettings(levels=2), resume=resume, max_held_bytes=1 << 20)

    def connect(self, ready: str) -> dict[str, Any]:
        opening: dict[str, Any] = json.loads(self.protocol.opening())
        assert isinstance(self.receive(ready), Ready)
        return opening

    def receive(self, message: str | bytes) -> Event | None:
        return self.protocol.receive(message, 0.0)

    def send(self) -> list[bytes | str]:
        """Everything that is to be sent, control messages by their type."""
        sent: list[bytes | str] = []
        while (entry := self.protocol.outbox.peek(1 << 20)) is not None:
            message = self.protocol.encoded(entry)
            sent.append(json.loads(message)["type"] if isinstance(message, str) else message)
            self.protocol.sent(entry, 0.0)
        return sent

    def sequences(self, *messages: bytes) -> list[int]:
        frames = [self.receive(message) for message in messages]
        return [frame.sequence for frame in frames if isinstance(frame, Frame)]


def test_the_first_message_asks_for_the_settings(wire):
    played = Played()
    assert played.connect(wire.ready()) == {
        "type": "hello",
        "mode": "encode",
        "format": "s16le",
        "sample_rate": 24_000,
        "channels": 1,
        "levels": 2,
    }


def test_a_resume_goes_back_to_what_the_service_holds_and_repeats_nothing(wire):
    played = Played()
    played.connect(wire.ready())
    played.protocol.outbox.append(5 * FRAME)
    played.send()
    assert played.sequences(*(wire.codes(index, 1, 2) for index in range(3))) == [0, 1, 2]
    opening = played.connect(wire.ready(resume_token="t2", resumed=True, position=4 * 1920))
    assert opening == {"type": "resume", "token": "t1", "last_sequence": 2, "epoch": 0}
    assert played.send() == [FRAME]
    assert played.sequences(*(wire.codes(index, 1, 2) for index in range(1, 5))) == [3, 4]
    assert (played.protocol.token, played.protocol.resumes, played.protocol.repeated_frames) == ("t2", 1, 2)


def test_after_a_crash_input_since_the_checkpoint_is_sent_again(wire):
    played = Played()
    played.connect(wire.ready())
    played.protocol.outbox.append(2 * FRAME)
    played.send()
    played.receive('{"type":"checkpoint","position":1920,"sequence":1,"epoch":0}')
    assert played.protocol.outbox.held_bytes == len(FRAME)
    played.connect(wire.ready(resumed=True, position=1920))
    assert played.send() == [FRAME]


def test_a_goaway_brings_the_token_for_whoever_takes_over(wire):
    played = Played()
    played.connect(wire.ready())
    played.receive('{"type":"goaway","code":"draining","time_left_ms":5,"resume_token":"elsewhere"}')
    assert json.loads(played.protocol.opening())["token"] == "elsewhere"


def test_who_does_not_want_to_resume_keeps_nothing(wire):
    played = Played(resume=False)
    played.connect(wire.ready())
    played.protocol.outbox.append(FRAME)
    played.send()
    assert played.protocol.token is None
    assert played.protocol.outbox.held_bytes == 0
    assert not played.protocol.ack_is_due


def test_answers_are_acknowledged_now_and_then(wire):
    played = Played()
    played.connect(wire.ready())
    for index in range(ACK_FRAMES):
        assert not played.protocol.ack_is_due
        played.receive(wire.codes(index, 1, 2))
    assert played.protocol.ack_is_due
    assert json.loads(played.protocol.ack()) == {"type": "ack", "sequence": ACK_FRAMES - 1, "epoch": 0}
    assert not played.protocol.ack_is_due


def test_a_gap_is_a_broken_promise(wire):
    played = Played()
    played.connect(wire.ready())
    played.receive(wire.codes(0, 1, 2))
    with pytest.raises(InternalError, match="answer 2, expected 1"):
        played.receive(wire.codes(2, 1, 2))


def test_a_flush_is_answered_once_however_often_it_is_sent(wire):
    played = Played()
    played.connect(wire.ready())
    played.protocol.outbox.append(FRAME)
    played.protocol.outbox.append_control("flush")
    assert played.send() == [FRAME, "flush"]
    assert isinstance(played.receive(wire.flushed(1)), Flushed)
    # The service crashed and went back to before the flush: it must be told again, and its answer is old.
    played.connect(wire.ready(resumed=True, position=0))
    assert played.send() == [FRAME, "flush"]
    assert played.receive(wire.flushed(1)) is None
    played.protocol.outbox.append_control("flush")
    assert played.send() == ["flush"]
    assert isinstance(played.receive(wire.flushed(1, flushes=2)), Flushed)


def test_a_flush_that_was_done_is_not_asked_for_again(wire):
    played = Played()
    played.connect(wire.ready())
    played.protocol.outbox.append(FRAME)
    played.protocol.outbox.append_control("flush")
    played.send()
    played.connect(wire.ready(resumed=True, position=1920, flushes=1))
    assert played.send() == []
    assert isinstance(played.receive(wire.flushed(1)), Flushed)
    played.connect(wire.ready(resumed=True, position=1920, flushes=0))
    assert played.send() == ["flush"]


def test_a_reset_starts_sequences_anew(wire):
    played = Played()
    played.connect(wire.ready())
    played.protocol.outbox.append(FRAME)
    played.protocol.outbox.append_control("reset")
    played.send()
    assert played.sequences(wire.codes(0, 1, 2)) == [0]
    assert isinstance(played.receive('{"type":"reset_done","epoch":1}'), ResetDone)
    assert played.protocol.outbox.held_bytes == 0
    assert played.sequences(wire.codes(0, 1, 2), wire.codes(1, 1, 2)) == [0, 1]
    assert json.loads(played.protocol.opening())["epoch"] == 1
    played.connect(wire.ready(resumed=True, epoch=1, position=0))
    assert played.send() == []


def test_a_reset_that_was_done_on_a_lost_line_is_told_in_its_place(wire):
    played = Played()
    played.connect(wire.ready())
    played.protocol.outbox.append(FRAME)
    played.protocol.outbox.append_control("reset")
    played.protocol.outbox.append(2 * FRAME)
    played.send()
    played.connect(wire.ready(resumed=True, epoch=1, position=1920))
    assert played.send() == [FRAME]
    assert played.sequences(wire.codes(0, 1, 2)) == [0]
    assert isinstance(played.receive('{"type":"reset_done","epoch":1}'), ResetDone)
    assert played.receive('{"type":"reset_done","epoch":1}') is None
    assert played.sequences(wire.codes(0, 1, 2), wire.codes(1, 1, 2)) == [0, 1]


def test_a_service_that_crashed_before_a_reset_starts_the_epoch_anew(wire):
    played = Played()
    played.connect(wire.ready())
    played.protocol.outbox.append_control("reset")
    played.protocol.outbox.append(2 * FRAME)
    played.send()
    played.receive('{"type":"reset_done","epoch":1}')
    assert played.sequences(wire.codes(0, 1, 2)) == [0]
    played.connect(wire.ready(resumed=True, epoch=1, position=0))
    assert played.send() == [2 * FRAME]
    assert played.sequences(wire.codes(1, 1, 2)) == [1]


def refused(code: str) -> CodecError:
    return refusal({"code": code, "subject": "resume"})


def test_a_stream_that_is_gone_begins_again_where_all_its_input_is_here(wire):
    played = Played()
    played.connect(wire.ready())
    played.protocol.outbox.append(2 * FRAME)
    played.protocol.outbox.append_control("flush")
    played.send()
    assert played.sequences(wire.codes(0, 1, 2)) == [0]
    assert not played.protocol.begin_again(refused("setting"))
    assert played.protocol.begin_again(refused("resume_refused"))
    assert played.connect(wire.ready(resume_token="t2"))["type"] == "hello"
    assert played.send() == [2 * FRAME, "flush"]
    assert played.sequences(wire.codes(0, 1, 2), wire.codes(1, 1, 2)) == [1]
    assert isinstance(played.receive(wire.flushed(2)), Flushed)


def test_a_stream_of_which_input_was_let_go_does_not_begin_again(wire):
    played = Played()
    played.connect(wire.ready())
    played.protocol.outbox.append(2 * FRAME)
    played.send()
    played.receive('{"type":"checkpoint","position":1920,"sequence":1,"epoch":0}')
    assert not played.protocol.begin_again(refused("resume_lost"))


def test_a_stream_goes_on_with_its_own_codec_only(wire):
    played = Played()
    played.connect(wire.ready())
    with pytest.raises(UnavailableError, match="another codec"):
        played.connect(wire.ready(resumed=True, model={"sha256": "11", "numerics": "kyutai"}))


def test_nothing_is_believed_before_ready(wire):
    played = Played()
    for message in (wire.codes(0, 1, 2), '{"type":"checkpoint","position":0,"epoch":0}'):
        with pytest.raises(UnavailableError):
            played.receive(message)
