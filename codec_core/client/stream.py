"""A stream to a service, on asyncio: goes on where it was when the line is lost, and bounds what waits in either direction.

The calls here fill the outbox of :mod:`codec_core.client.protocol` and empty the queue of frames; what lies between is
:mod:`codec_core.client.conversation`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from codec_core.client.conversation import Conversation
from codec_core.client.messages import Flushed, Frame, Ready
from codec_core.client.observation import Notice, StreamStats, observe
from codec_core.client.opus_sound import OpusMessage, OpusSender, require_opus
from codec_core.client.payload import Payload, opus_samples, payload_bytes
from codec_core.client.protocol import StreamProtocol
from codec_core.client.received import EndedError
from codec_core.client.settings import LineOptions, StreamSettings
from codec_core.errors import SessionClosedError


class Stream:
    """One stream; a context manager. Of one event loop; for other threads there is :class:`~codec_core.client.BlockingStream`.

    Args:
        url: where the service is; see :func:`~codec_core.client.line.stream_url`.
        settings: what the stream shall be.
        options: how to behave on the line.
        paced: whether input goes out in real time, as from a microphone, instead of as fast as the service takes it.
        notify: called with what no call reports.

    """

    def __init__(
        self,
        url: str,
        settings: StreamSettings | None = None,
        options: LineOptions | None = None,
        *,
        paced: bool = False,
        notify: Callable[[Notice], None] | None = None,
    ) -> None:
        self._settings = settings or StreamSettings()
        self._options = options or LineOptions()
        self._flushed: Flushed | None = None
        self._opus = _opus_sender(self._settings)
        held = self._options.max_held_bytes
        self._protocol = StreamProtocol(self._settings, resume=self._options.resume, max_held_bytes=held)
        self._line = Conversation(url, self._protocol, self._options, paced=paced, notify=notify or (lambda _: None))

    async def __aenter__(self) -> Self:
        """Connect and agree the settings.

        Raises:
            UnavailableError: there is no service, or it does not answer; or the package that Opus needs is not installed.
            CodecError: its refusal.

        """
        if self._settings.is_opus:
            require_opus()
        await self._line.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def ready(self) -> Ready:
        """What the service said when the settings were agreed, or when the stream was last resumed."""
        if self._protocol.ready is None:
            raise SessionClosedError("stream", "not opened", "async with")
        return self._protocol.ready

    @property
    def flushed(self) -> Flushed:
        """The counts with which the last :meth:`run` ended.

        Raises:
            SessionClosedError: none has.

        """
        if self._flushed is None:
            raise SessionClosedError("stream", "no run that ended", "the last frame of one")
        return self._flushed

    @property
    def stats(self) -> StreamStats:
        """Latency, lag, buffers, resumes."""
        return observe(self._protocol, len(self._line.received))

    async def send(self, data: Payload) -> None:
        """Send input of any length: bytes as on the wire, or an array; see :data:`~codec_core.client.payload.Payload`.

        Returns as soon as the input has room in the buffer of what is unsent, a lost line or not.

        Raises:
            InputError: the array is not what the settings say.
            CodecError: the stream has ended, for this reason.

        """
        ready = self.ready
        if self._opus is not None:
            await self._append_messages(self._opus.push(opus_samples(data, self._settings)))
            return
        payload = payload_bytes(data, self._settings, ready.levels, ready.codebook_entries)
        for start in range(0, len(payload), self._line.message_bytes):
            await self._append(payload[start : start + self._line.message_bytes])

    async def _append_messages(self, messages: list[OpusMessage]) -> None:
        for data, samples in messages:
            await self._append(data, samples)

    async def _append(self, data: bytes, samples: int | None = None) -> None:
        outbox = self._protocol.outbox
        while outbox.unsent_bytes >= self._options.max_unsent_bytes:
            self._line.room.clear()
            self._line.require_open()
            await self._line.room.wait()
        self._line.require_open()
        outbox.append(data, samples)
        self._line.work.set()

    async def flush(self) -> Flushed:
        """Have the tail padded to a whole frame and everything answered; the stream may go on afterwards.

        The answers come through :meth:`receive`: somebody must read them while this waits.

        Raises:
            CodecError: the stream has ended, for this reason.

        """
        if self._opus is not None:
            await self._append_messages(self._opus.flush())
        return await self._line.flush()

    async def reset(self) -> None:
        """Start over as a new stream: state, sequence and position. Answers owed come first, and somebody must read them."""
        if self._opus is not None:
            self._opus.restart()
        await self._line.reset()

    async def receive(self) -> Frame:
        """Wait for the next frame.

        Raises:
            EndedError: the stream was closed.
            CodecError: the stream has ended, for this reason.

        """
        while True:
            item = await self._line.received.get()
            if isinstance(item, Frame):
                return item

    async def __aiter__(self) -> AsyncIterator[Frame]:
        """Iterate over frames until the stream is closed."""
        with contextlib.suppress(EndedError):
            while True:
                yield await self.receive()

    async def run(self, source: Iterable[Payload] | AsyncIterable[Payload]) -> AsyncGenerator[Frame, None]:
        """Send everything that a source yields, flush, and iterate over the frames meanwhile; ends with the last of them.

        The stream is as open afterwards as before. What the source raises ends the stream, and is raised here.
        """
        feed = asyncio.create_task(self._feed(source))
        try:
            while not isinstance(item := await self._line.received.get(), Flushed):
                yield item
            self._flushed = item
        finally:
            feed.cancel()
            await asyncio.gather(feed, return_exceptions=True)

    async def convert(self, data: Payload) -> npt.NDArray[Any]:
        """Send input, flush, and return all that comes back.

        Returns:
            int32 codes [levels, frames] in mode ``encode``, else float32 audio [n]. What a language model writes is not in
            it: :meth:`run` hands it out.

        """
        frames = [frame async for frame in self.run([data])]
        if self._settings.mode == "encode":
            columns = [frame.codes for frame in frames if frame.codes is not None]
            return np.array(columns, np.int32).reshape(-1, self.ready.levels).T
        return np.concatenate([np.empty(0, np.float32), *(frame.pcm for frame in frames if frame.pcm is not None)])

    async def close(self) -> None:
        """Close the stream: what was sent is still dealt with, answers that nobody read are dropped. Harmless when repeated."""
        await self._line.close()

    async def _feed(self, source: Iterable[Payload] | AsyncIterable[Payload]) -> None:
        try:
            if isinstance(source, AsyncIterable):
                async for data in source:
                    await self.send(data)
            else:
                for data in source:
                    await self.send(data)
            await self.flush()
        except Exception as cause:
            await self._line.received.end(cause)


def _opus_sender(settings: StreamSettings) -> OpusSender | None:
    if not settings.is_opus or settings.mode == "decode":
        return None
    return OpusSender(in_pages=settings.sample_format == "opus", sample_rate_hz=settings.sample_rate_hz)
