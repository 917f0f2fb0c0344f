"""One stream: the client's events in, its answers out, in order; no sockets.

``encode`` turns audio into codes, ``decode`` codes into audio, ``echo`` audio into the audio that its codes stand for, with
``echo_codes`` each frame's codes before it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from codec_core import CodecModel
from codec_core.framing import FrameAccumulator
from server.codec_executor import CodecExecutor
from server.errors import ProtocolError
from server.frame_errors import naming_frame
from server.sample_format import AudioIntake, AudioOutlet
from server.wire import Ack, Audio, Close, Codes, Event, Flush, Hello, Ping, Reset
from server.wire_messages import KIND_PCM, pack_codes, pack_frame, server_text
from server.wire_settings import StreamSettings

Send = Callable[[str | bytes], Awaitable[None]]
Array = npt.NDArray[Any]


class StreamSession:
    """The codec's side of one connection.

    Args:
        settings: what was agreed.
        model: the model; the session takes an encoder, a decoder or both of it.
        executor: runs their steps.
        send: sends one message to the client; returns once it is on its way.

    """

    def __init__(self, settings: StreamSettings, model: CodecModel, executor: CodecExecutor, send: Send) -> None:
        self._settings = settings
        self._executor = executor
        self._send = send
        self._frame_samples = model.info.frame_samples
        self._encoder = None if settings.mode == "decode" else model.encoder(settings.levels)
        self._decoder = None if settings.mode == "encode" else model.decoder(settings.levels)
        self.epoch = 0
        self.frames = 0
        self._start()

    def _start(self) -> None:
        self._intake = AudioIntake(self._settings)
        self._outlet = AudioOutlet(self._settings)
        self._accumulator = FrameAccumulator(self._frame_samples)
        self._epoch_frames = 0
        self._padded_samples = 0
        self._sequence = 0
        self._clipping_told = False

    async def handle(self, event: Event) -> None:
        """Answer one event; returns when every answer that is due is on its way.

        Raises:
            CodecError: the event is refused; the stream is then over.

        """
        match event:
            case Audio(data):
                await self._encode_frames(self._accumulator.push(self._intake.push(data)))
            case Codes(frames):
                for codes in frames:
                    await self._play(np.asarray(codes, np.int32))
                    self._count_frame()
            case Flush():
                await self._flush()
            case Reset():
                await self._reset()
            case Ping(identity):
                await self._send(server_text("pong", id=identity))
            case Ack(sequence):
                self._check_ack(sequence)
            case Hello() | Close():
                raise ProtocolError(type(event).__name__.lower(), found="an open stream", expected="another message")

    def close(self) -> None:
        """Free the codec's state, once the step it may be in has ended."""
        for session in (self._encoder, self._decoder):
            if session is not None:
                self._executor.retire(session)

    async def _encode_frames(self, frames: Array) -> None:
        for pcm in frames:
            with naming_frame(self._epoch_frames):
                codes = await self._executor.encode(self._required(self._encoder), pcm)
            if self._settings.mode == "encode" or self._settings.echo_codes == "on":
                await self._send_codes(codes)
            if self._settings.mode == "echo":
                await self._play(codes)
            self._count_frame()

    async def _play(self, codes: Array) -> None:
        with naming_frame(self._epoch_frames):
            pcm = await self._executor.decode(self._required(self._decoder), codes)
        await self._warn_of_clipping(pcm)
        await self._send_pcm(self._outlet.push(pcm))

    async def _flush(self) -> None:
        if self._encoder is not None:
            await self._encode_frames(self._accumulator.push(self._intake.flush()))
            pending = self._accumulator.pending_samples
            if pending:
                self._padded_samples += self._frame_samples - pending
                await self._encode_frames(self._accumulator.flush())
        if tail := self._outlet.flush():
            await self._send_pcm(tail)
        position = self._epoch_frames * self._frame_samples
        await self._send(
            server_text(
                "flushed",
                frames=self._epoch_frames,
                position=position,
                samples=position - self._padded_samples,
                padded_samples=self._padded_samples,
                received_samples=self._intake.received_samples,
                sent_samples=self._outlet.sent_samples,
            )
        )

    async def _reset(self) -> None:
        for session in (self._encoder, self._decoder):
            # A stream that has not moved is as new as a reset would make it.
            if session is not None and session.position_frames:
                await self._executor.reset(session)
        self._start()
        self.epoch += 1
        await self._send(server_text("reset_done", epoch=self.epoch))

    async def _send_codes(self, codes: Array) -> None:
        position = self._epoch_frames * self._frame_samples
        values = [int(code) for code in codes]
        if self._settings.codes == "json":
            await self._send(server_text("codes", sequence=self._sequence, position=position, codes=values))
        else:
            await self._send(pack_codes(self._sequence, position, values))
        self._sequence += 1

    async def _send_pcm(self, payload: bytes) -> None:
        position = self._epoch_frames * self._frame_samples
        await self._send(pack_frame(KIND_PCM, 1, self._sequence, position, payload))
        self._sequence += 1

    async def _warn_of_clipping(self, pcm: Array) -> None:
        if self._settings.format == "f32le" or self._clipping_told or float(np.abs(pcm).max()) <= 1.0:
            return
        self._clipping_told = True
        text = f"decoded audio leaves full scale first at frame {self._epoch_frames}; it is clamped, f32le would keep it"
        await self._send(server_text("warning", code="clipping", message=text))

    def _count_frame(self) -> None:
        self._epoch_frames += 1
        self.frames += 1

    def _check_ack(self, sequence: int) -> None:
        if sequence >= self._sequence:
            raise ProtocolError(
                "ack.sequence", found=str(sequence), expected=f"less than {self._sequence}, the next to be sent"
            )

    def _required(self, session: Any) -> Any:
        if session is None:
            raise ProtocolError("audio or codes", found=f"mode={self._settings.mode}", expected="a message of that mode")
        return session
