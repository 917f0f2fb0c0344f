"""The same stream for programs without an event loop: it gets a loop of its own, on a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy.typing as npt

from codec_core.client.messages import Flushed, Frame, Ready
from codec_core.client.observation import Notice, StreamStats
from codec_core.client.payload import Payload
from codec_core.client.received import EndedError
from codec_core.client.settings import LineOptions, StreamSettings
from codec_core.client.stream import Stream

T = TypeVar("T")


class BlockingStream:
    """A :class:`~codec_core.client.Stream` whose calls wait. One thread may send while another receives.

    Takes the same arguments. ``notify`` is called on the stream's own thread.
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
        self._stream = Stream(url, settings, options, paced=paced, notify=notify)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="mimi-stream", daemon=True)

    def __enter__(self) -> Self:
        """Connect and agree the settings; see :meth:`Stream.__aenter__` for what it raises."""
        self._thread.start()
        try:
            self._await(self._stream.__aenter__())
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self._await(self._stream.close())
        finally:
            self._stop()

    @property
    def ready(self) -> Ready:
        """What the service said when the settings were agreed."""
        return self._stream.ready

    @property
    def stats(self) -> StreamStats:
        """Latency, lag, buffers, resumes."""
        return self._await(self._observe())

    def send(self, data: Payload) -> None:
        """Send input of any length; waits while too much is unsent. See :meth:`Stream.send`."""
        self._await(self._stream.send(data))

    def flush(self) -> Flushed:
        """Have everything answered. Another thread must read the frames meanwhile, if they are many; or use :meth:`run`."""
        return self._await(self._stream.flush())

    def reset(self) -> None:
        """Start over as a new stream."""
        self._await(self._stream.reset())

    def receive(self) -> Frame:
        """Wait for the next frame; see :meth:`Stream.receive` for what it raises."""
        return self._await(self._stream.receive())

    def __iter__(self) -> Iterator[Frame]:
        """Iterate over frames until the stream is closed."""
        with contextlib.suppress(EndedError):
            while True:
                yield self.receive()

    def run(self, source: Iterable[Payload]) -> Iterator[Frame]:
        """Send everything that a source yields, flush, and iterate over the frames meanwhile.

        The source is read on the stream's thread and should not wait long; one that does is better sent by a thread of its own.
        """
        frames = self._stream.run(source)
        try:
            while True:
                try:
                    frame = self._await(anext(frames))
                except StopAsyncIteration:
                    return
                yield frame
        finally:
            self._await(frames.aclose())

    def convert(self, data: Payload) -> npt.NDArray[Any]:
        """Send input, flush, and return all that comes back; see :meth:`Stream.convert`."""
        return self._await(self._stream.convert(data))

    async def _observe(self) -> StreamStats:
        return self._stream.stats

    def _await(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
