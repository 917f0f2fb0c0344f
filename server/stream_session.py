"""One stream: the client's events in, its answers out, in order; no sockets.

``encode`` turns audio into codes, ``decode`` codes into audio, ``echo`` audio into the audio that its codes stand for, with
``echo_codes`` each frame's codes before it; ``talk`` turns audio into text and audio of a language model's own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from codec_core import CodecModel
from codec_core.errors import SnapshotError
from codec_core.framing import FrameAccumulator
from server.codec_executor import CodecExecutor
from server.errors import ProtocolError
from server.frame_errors import naming_frame
from server.language import Language
from server.opus_format import OpusIntake, OpusOutlet
from server.replay_window import NOTHING, Answer
from server.sample_format import AudioIntake, AudioOutlet
from server.stream_state import StreamCounters, StreamState
from server.stream_talk import Talker
from server.wire import Audio, Codes, Event, Flush, Ping, Reset
from server.wire_messages import pack_codes, pack_frame, server_text
from server.wire_opus import OpusPlace, Packets
from server.wire_talk import parts_of

Send = Callable[[Answer], Awaitable[None]]
Array = npt.NDArray[Any]


class StreamSession:
    """The codec's side of one stream. Making one from a snapshot takes time: do it off the event loop.

    Args:
        state: where to begin; a new stream's holds only its settings.
        model: the model; the session takes an encoder, a decoder or both of it.
        executor: runs their steps.
        send: sends one answer; returns once the next may be made.
        language: the language model, for mode ``talk``.

    Raises:
        SnapshotError: the state holds snapshots that are damaged or of another model.

    """

    def __init__(
        self, state: StreamState, model: CodecModel, executor: CodecExecutor, send: Send, language: Language | None = None
    ) -> None:
        self.settings = settings = state.settings
        self._executor = executor
        self._send = send
        self._frame_samples = model.info.frame_samples
        self._encoder = self._decoder = None
        self.talker = Talker(language, state, executor) if settings.mode == "talk" and language is not None else None
        """The language model's side, in mode ``talk``."""
        own_levels = self.talker.info.own_levels if self.talker is not None else 0
        parts = parts_of(settings.mode, own_levels)
        if "encoder" in parts:
            self._encoder = model.restore_encoder(state.encoder) if state.encoder else model.encoder(settings.levels)
        if "decoder" in parts:
            levels = own_levels or settings.levels
            self._decoder = model.restore_decoder(state.decoder) if state.decoder else model.decoder(levels)
        self.answering_s = 0.0
        """Time spent so far in having frames computed, waiting for a worker included."""
        self._start(replace(state.counters))
        self._accumulator.restore(state.pending)
        if isinstance(self._intake, AudioIntake):
            self._intake.restore(state.intake, state.counters.received_samples)
        if isinstance(self._outlet, AudioOutlet):
            self._outlet.restore(state.outlet, state.counters.sent_samples)

    def _start(self, counters: StreamCounters) -> None:
        self._counters = counters
        is_opus = self.settings.is_opus
        self._intake: AudioIntake | OpusIntake = OpusIntake() if is_opus else AudioIntake(self.settings)
        self._outlet: AudioOutlet | OpusOutlet = OpusOutlet(self.settings) if is_opus else AudioOutlet(self.settings)
        self._accumulator = FrameAccumulator(self._frame_samples)

    @property
    def counters(self) -> StreamCounters:
        """Where the stream stands; a copy."""
        received, sent = self._intake.received_samples, self._outlet.sent_samples
        return replace(self._counters, received_samples=received, sent_samples=sent)

    @property
    def position(self) -> int:
        """As :attr:`server.stream_state.StreamState.position`."""
        return self._counters.epoch_frames if self.settings.mode == "decode" else self._intake.position

    @property
    def opus_place(self) -> OpusPlace | None:
        """Where the client's Opus stream stands, for the next connection to go on with."""
        return self._intake.place if isinstance(self._intake, OpusIntake) else None

    @property
    def can_be_saved(self) -> bool:
        """Whether another process could go on with it: decoders and encoders of Opus cannot be taken there."""
        return not self.settings.is_opus

    def capture(self) -> StreamState:
        """Return the state. It takes time: call it off the event loop, and let no event be handled meanwhile.

        Raises:
            SnapshotError: the stream cannot be saved.

        """
        if not (isinstance(self._intake, AudioIntake) and isinstance(self._outlet, AudioOutlet)):
            raise SnapshotError("stream snapshot", f"format {self.settings.format}", "PCM, whose state can be kept")
        language, text_pending = (b"", b"") if self.talker is None else self.talker.capture()
        return StreamState(
            settings=self.settings,
            counters=self.counters,
            pending=self._accumulator.pending(),
            intake=self._intake.state(),
            outlet=self._outlet.state(),
            encoder=b"" if self._encoder is None else self._encoder.snapshot(),
            decoder=b"" if self._decoder is None else self._decoder.snapshot(),
            language=language,
            text_pending=text_pending,
        )

    def drop_split_sample(self) -> None:
        """Forget the bytes of a sample whose rest the lost connection has taken with it."""
        self._intake.drop_split_sample()

    async def handle(self, event: Event) -> None:
        """Answer one event; returns when every answer that is due is on its way.

        Raises:
            CodecError: the event is refused; the stream is then over.

        """
        match event:
            case Audio(data):
                await self._encode_frames(self._accumulator.push(self._pcm_intake.push(data)))
            case Packets():
                await self._encode_frames(self._accumulator.push(await self._unpacked(event)))
            case Codes(frames):
                for codes in frames:
                    await self._play(np.asarray(codes, np.int32))
                    self._count_frame()
            case Flush():
                await self._flush()
            case Reset():
                await self.reset(self._counters.epoch + 1)
                epoch = self._counters.epoch
                await self._send(Answer(server_text("reset_done", epoch=epoch), epoch, NOTHING))
            case Ping(identity):
                await self._send(Answer(server_text("pong", id=identity), kept=False))
            case _:
                raise ProtocolError(type(event).__name__.lower(), found="an open stream", expected="another message")

    async def reset(self, epoch: int) -> None:
        """Start over as a new stream, in this epoch."""
        for session in (self._encoder, self._decoder):
            # A stream that has not moved is as new as a reset would make it.
            if session is not None and session.position_frames:
                await self._executor.reset(session)
        if self.talker is not None:
            await self.talker.reset()
        self._start(StreamCounters(epoch=epoch, frames=self._counters.frames))

    def close(self) -> None:
        """Free the codec's state, once the step it may be in has ended."""
        for session in (self._encoder, self._decoder):
            if session is not None:
                self._executor.retire(session)
        if self.talker is not None:
            self.talker.close()

    async def _encode_frames(self, frames: Array) -> None:
        for pcm in frames:
            started_s = time.monotonic()
            with naming_frame(self._counters.epoch_frames):
                codes = await self._executor.encode(self._required(self._encoder), pcm)
            self.answering_s += time.monotonic() - started_s
            if self.settings.mode == "encode" or self.settings.echo_codes == "on":
                await self._send_codes(codes)
            if self.settings.mode == "echo":
                await self._play(codes)
            if self.settings.mode == "talk":
                await self._converse(self._required(self.talker), codes)
            self._count_frame()

    async def _converse(self, talker: Talker, codes: Array) -> None:
        started_s = time.monotonic()
        with naming_frame(self._counters.epoch_frames):
            reply = await talker.reply(codes)
        self.answering_s += time.monotonic() - started_s
        if reply is None:
            return
        place = {"sequence": self._counters.sequence, "position": self._counters.epoch_frames * self._frame_samples}
        await self._send_frame(server_text("text", **place, token=reply.token, text=reply.text))
        if len(reply.codes):
            await self._play(reply.codes)

    async def _play(self, codes: Array) -> None:
        started_s = time.monotonic()
        with naming_frame(self._counters.epoch_frames):
            pcm = await self._executor.decode(self._required(self._decoder), codes)
        self.answering_s += time.monotonic() - started_s
        await self._warn_of_clipping(pcm)
        await self._send_pcm(await self._apart(self._outlet.push, pcm))

    async def _flush(self) -> None:
        counters = self._counters
        if self._encoder is not None:
            await self._encode_frames(self._accumulator.push(self._intake.flush()))
            pending = self._accumulator.pending_samples
            if pending:
                counters.padded_samples += self._frame_samples - pending
                await self._encode_frames(self._accumulator.flush())
        if isinstance(self._intake, OpusIntake) and self.settings.format == "opus-packets":
            self._intake.place = None
        tail = await self._apart(self._outlet.flush)
        if tail:
            await self._send_pcm(tail)
        counters.flushes += 1
        position = counters.epoch_frames * self._frame_samples
        text = server_text(
            "flushed",
            frames=counters.epoch_frames,
            position=position,
            samples=position - counters.padded_samples,
            padded_samples=counters.padded_samples,
            received_samples=self._intake.received_samples,
            sent_samples=self._outlet.sent_samples,
            flushes=counters.flushes,
        )
        await self._send(Answer(text, counters.epoch))

    async def _send_codes(self, codes: Array) -> None:
        position = self._counters.epoch_frames * self._frame_samples
        values = [int(code) for code in codes]
        if self.settings.codes == "json":
            await self._send_frame(server_text("codes", sequence=self._counters.sequence, position=position, codes=values))
        else:
            await self._send_frame(pack_codes(self._counters.sequence, position, values))

    async def _send_pcm(self, payload: bytes) -> None:
        position = self._counters.epoch_frames * self._frame_samples
        header = (self._outlet.kind, self._outlet.width, self._counters.sequence, position)
        await self._send_frame(pack_frame(*header, payload))

    async def _send_frame(self, message: str | bytes) -> None:
        sequence = self._counters.sequence
        self._counters.sequence += 1
        await self._send(Answer(message, self._counters.epoch, sequence))

    async def _warn_of_clipping(self, pcm: Array) -> None:
        if self.settings.format == "f32le" or self._counters.clipping_told or float(np.abs(pcm).max()) <= 1.0:
            return
        self._counters.clipping_told = 1
        where = f"first at frame {self._counters.epoch_frames}"
        text = f"decoded audio leaves full scale {where}; it is clamped, f32le would keep it"
        await self._send(Answer(server_text("warning", code="clipping", message=text), kept=False))

    @property
    def _pcm_intake(self) -> AudioIntake:
        if isinstance(self._intake, AudioIntake):
            return self._intake
        raise ProtocolError("audio", found="PCM", expected=f"format {self.settings.format}")

    async def _unpacked(self, packets: Packets) -> Array:
        if isinstance(self._intake, OpusIntake):
            return await asyncio.to_thread(self._intake.push, packets)
        raise ProtocolError("audio", found="Opus", expected=f"format {self.settings.format}")

    async def _apart(self, make: Callable[..., bytes], *pcm: Array) -> bytes:
        """Make sound for the way out: Opus off the event loop, where it would hold everybody up."""
        return await asyncio.to_thread(make, *pcm) if self.settings.is_opus else make(*pcm)

    def _count_frame(self) -> None:
        self._counters.epoch_frames += 1
        self._counters.frames += 1

    def _required(self, session: Any) -> Any:
        if session is None:
            raise ProtocolError("audio or codes", found=f"mode={self.settings.mode}", expected="a message of that mode")
        return session
