"""The client's end of one stream, over any number of connections. Sans-IO: messages in, events and messages out.

The stream outlives its connections. On each one the first message out is :meth:`StreamProtocol.opening`, ``hello`` or later
``resume``. The service then says how much input it holds, and the outbox goes back to there. Answers that come twice are
dropped here: whoever reads the events sees each frame once and in order.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Final

from codec_core.client.messages import (
    Checkpoint,
    Event,
    Flushed,
    Frame,
    GoAway,
    Ready,
    ResetDone,
    parse_binary,
    parse_text,
)
from codec_core.client.opus_sound import OpusReceiver
from codec_core.client.outbox import Control, Entry, Outbox
from codec_core.client.settings import StreamSettings
from codec_core.client.timing import LatencyMeter
from codec_core.errors import CodecError, InternalError, UnavailableError

ACK_FRAMES: Final = 8
"""Answers between two acknowledgements."""
CODEC_FRAMES_PER_S: Final = 12.5
GONE: Final = frozenset({"resume_refused", "resume_lost", "snapshot"})
"""Refusals of a service that cannot give a stream back."""


class StreamProtocol:
    """One stream.

    Args:
        settings: what is asked for.
        resume: whether input is kept for connections to come.
        max_held_bytes: most input kept.

    """

    def __init__(self, settings: StreamSettings, *, resume: bool, max_held_bytes: int) -> None:
        self.settings = settings
        self._resume = resume
        self._max_held_bytes = max_held_bytes
        self._outbox: Outbox | None = None
        self._meter: LatencyMeter | None = None
        self.ready: Ready | None = None
        self.token: str | None = None
        self.epoch = 0
        self.resumes = 0
        self.repeated_frames = 0
        """Answers that came again and were dropped."""
        self._opus: OpusReceiver | None = None
        if settings.is_opus:
            in_pages = settings.sample_format == "opus"
            self._opus = OpusReceiver(in_pages=in_pages, sample_rate_hz=settings.sample_rate_hz)
        self._last_sequence = -1
        self._acked_sequence = -1
        self._flushes_answered = 0

    @property
    def outbox(self) -> Outbox:
        """The input; there is one once the service is ready."""
        if self._outbox is None:
            raise UnavailableError("stream", "no settings agreed yet", "an open stream")
        return self._outbox

    @property
    def meter(self) -> LatencyMeter:
        """Latency and lag; there is one once the service is ready."""
        if self._meter is None:
            raise UnavailableError("stream", "no settings agreed yet", "an open stream")
        return self._meter

    @property
    def units_per_s(self) -> float:
        """Rate of the input, in samples or frames of codes."""
        return CODEC_FRAMES_PER_S if self.settings.mode == "decode" else float(self.settings.wire_rate_hz)

    def opening(self) -> str:
        """Make the first message of a connection."""
        if self.token is not None:
            held = {"last_sequence": self._last_sequence, "epoch": self.epoch}
            return json.dumps({"type": "resume", "token": self.token, **held})
        return json.dumps({"type": "hello", **self.settings.hello()})

    def begin_again(self, refusal: CodecError) -> bool:
        """Make up for a stream that the service no longer has, where all its input is still here.

        A service that crashed before its first checkpoint, or keeps none, refuses to resume. The same input makes the same
        answers: the next :meth:`opening` asks for a new stream, which is sent everything, and whose first answers are known.
        """
        if refusal.code not in GONE or self.token is None or self.epoch or not self.outbox.is_whole:
            return False
        self.token = None
        return True

    def receive(self, message: str | bytes, now_s: float) -> Event | None:
        """Take one message.

        Returns:
            What it means to whoever uses the stream; ``None`` for what is settled here, or came before.

        Raises:
            UnavailableError: it is not of ``mimi.v1``, or asks for input that is not kept.
            InternalError: it breaks a promise of the protocol, such as an answer left out.

        """
        if isinstance(message, bytes):
            return self._frame(parse_binary(message, self.settings.sample_format), now_s)
        event = parse_text(message)
        match event:
            case Frame():
                return self._frame(event, now_s)
            case Ready():
                self._agree(event)
            case Checkpoint(position, epoch):
                self.outbox.release(epoch, position)
            case GoAway(_, token):
                self.token = token if token is not None and self._resume else self.token
            case Flushed():
                return event if self._flush_is_new(event) else None
            case ResetDone():
                return event if self._reset_is_new(event) else None
        return event

    def encoded(self, entry: Entry) -> bytes | str:
        """Make the message of an entry of the outbox."""
        return json.dumps({"type": entry.kind}) if isinstance(entry, Control) else entry.data

    def sent(self, entry: Entry, now_s: float) -> None:
        """Count an entry as sent; call it right after :meth:`Outbox.peek`'s entry went out."""
        if isinstance(entry, Control):
            if entry.kind == "flush":
                self.meter.flush_sent(now_s)
        elif entry.place.epoch == self.epoch:
            self.meter.sent(entry.extent / self.outbox.unit_bytes, now_s)
        self.outbox.advance()

    @property
    def ack_is_due(self) -> bool:
        """Whether :meth:`ack` should be sent."""
        return self.token is not None and self._last_sequence - self._acked_sequence >= ACK_FRAMES

    def ack(self) -> str:
        """Acknowledge every answer so far, so that the service need not keep them."""
        self._acked_sequence = self._last_sequence
        return json.dumps({"type": "ack", "sequence": self._last_sequence, "epoch": self.epoch})

    def _agree(self, ready: Ready) -> None:
        self._require_same_codec(ready)
        self.ready = ready
        self.token = ready.resume_token if self._resume else None
        if self._outbox is None or self._meter is None:
            self._start(ready)
            return
        self.resumes += 1
        self._outbox.rewind(ready.epoch, ready.position, ready.flushes)
        if ready.epoch == self.epoch:
            self._meter.restart(ready.position)

    def _require_same_codec(self, ready: Ready) -> None:
        if self.ready is not None and _codec(ready) != _codec(self.ready):
            raise UnavailableError("service", f"another codec, {_codec(ready)}", f"{_codec(self.ready)}, as at the start")

    def _start(self, ready: Ready) -> None:
        unit_bytes = self.settings.unit_bytes(ready.levels)
        self._outbox = Outbox(unit_bytes, keeps=self.token is not None, max_held_bytes=self._max_held_bytes)
        self._meter = LatencyMeter(self.units_per_s / CODEC_FRAMES_PER_S)

    def _frame(self, frame: Frame, now_s: float) -> Frame | None:
        if self.ready is None:
            raise UnavailableError("service", "a frame before ready", "a service that speaks mimi.v1")
        if frame.sequence <= self._last_sequence:
            self.repeated_frames += 1
            return None
        if frame.sequence != self._last_sequence + 1:
            raise InternalError("service", f"answer {frame.sequence}", f"{self._last_sequence + 1}, the next")
        self._last_sequence = frame.sequence
        latency_ms = self.meter.answered(frame.position // self.ready.frame_samples, now_s)
        pcm = frame.pcm if frame.opus is None or self._opus is None else self._opus.decode(*frame.opus)
        return dataclasses.replace(frame, pcm=pcm, latency_ms=latency_ms)

    def _flush_is_new(self, flushed: Flushed) -> bool:
        """Tell a first answer from one that came again after a resume."""
        is_new = flushed.flushes > self._flushes_answered
        self._flushes_answered = max(self._flushes_answered, flushed.flushes)
        return is_new

    def _reset_is_new(self, done: ResetDone) -> bool:
        if done.epoch <= self.epoch:
            return False
        self.epoch = done.epoch
        self._last_sequence = self._acked_sequence = -1
        self._flushes_answered = 0
        if self._opus is not None:
            self._opus.restart()
        self.outbox.release(done.epoch, 0)
        self.meter.restart()
        return True


def _codec(ready: Ready) -> tuple[object, ...]:
    """Return what makes the answers what they are, beside the input."""
    language = ready.language_model or {}
    return ready.model.get("sha256"), ready.model.get("numerics"), ready.levels, language.get("sha256")
