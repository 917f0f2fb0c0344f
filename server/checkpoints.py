"""Snapshots of live streams, taken while they go on, kept in a store.

A snapshot is taken on a thread between two frames of its stream, which waits for that; it is packed and written while the
stream goes on. One is in the making at a time, so that no stream waits for another's.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TypeVar

from codec_core.errors import CodecError
from server.errors import SnapshotStoreError
from server.live_stream import LiveStream
from server.snapshot_store import FencedError, SnapshotStore
from server.stream_snapshot import StreamSnapshot, pack_stream, unpack_stream
from server.wire_messages import server_text
from server.wire_settings import Offer

Result = TypeVar("Result")
STORE_THREADS = 4
GOLDEN_RATIO = (5**0.5 - 1) / 2
"""The fractions of its multiples lie evenly, however many there are."""

log = logging.getLogger("mimi.server.snapshots")


@dataclass
class _Record:
    """What is known of one stream's snapshots."""

    begun_s: float = field(default_factory=time.monotonic)
    mark: tuple[int, ...] = (0, 0, 0, 0)
    is_stored: bool = False
    writing: asyncio.Task[None] | None = None


class Checkpoints:
    """The snapshots of one process. Without a store nothing is kept and nothing found.

    Args:
        store: where they go.
        key: signs them.
        model_sha256: of the model file; snapshots of another are refused.
        offer: what settings of a snapshot are checked against.
        interval_ms: time between two snapshots of a stream.
        retry_after_ms: what a client is told to wait where the store fails.
        on_fenced: called with a stream that another process has claimed.

    """

    def __init__(
        self,
        store: SnapshotStore | None,
        *,
        key: bytes,
        model_sha256: str,
        offer: Offer,
        interval_ms: int,
        retry_after_ms: int,
        on_fenced: Callable[[LiveStream], None],
    ) -> None:
        self.store = store
        self._key = key
        self._model_sha256 = model_sha256
        self._offer = offer
        self._interval_s = interval_ms / 1000
        self._retry_after_ms = retry_after_ms
        self._on_fenced = on_fenced
        # Apart, so that no stream waits for a store that is slow.
        self._capturing = ThreadPoolExecutor(1, thread_name_prefix="snapshots")
        self._storing = ThreadPoolExecutor(STORE_THREADS, thread_name_prefix="store")
        self._making = asyncio.Lock()
        self._saving = asyncio.Semaphore(STORE_THREADS)
        self._records: dict[str, _Record] = {}
        self.problem: str | None = None
        """Why the last snapshot could not be written; ``None`` while they can."""
        self.saved = 0
        self._begun = 0

    def begin(self, stream: LiveStream) -> None:
        """Count the time to a new stream's first snapshot from here: a part of the interval, for each stream another.

        Streams that come together would otherwise be saved together ever after, and for that time be slow together.
        """
        self._begun += 1
        self._record(stream).begun_s -= self._interval_s * (self._begun * GOLDEN_RATIO % 1)

    async def between_steps(self, stream: LiveStream) -> None:
        """Take a snapshot of a stream at rest, if one is due and none in the making; it is written while the stream goes on."""
        record = self._record(stream)
        mark = _mark(stream)
        due = time.monotonic() - record.begun_s >= self._interval_s and mark != record.mark
        if not due or self._making.locked() or not self.are_made_of(stream):
            return
        await self._making.acquire()
        record.begun_s = time.monotonic()
        try:
            snapshot = await self._captured(stream)
        except BaseException:
            self._making.release()
            raise
        record.mark = mark
        record.writing = asyncio.create_task(self._write_and_tell(stream, snapshot, record))

    def are_made_of(self, stream: LiveStream) -> bool:
        """Whether there is a store, and the stream's state can be put into it."""
        return self.store is not None and stream.session.can_be_saved

    async def save(self, stream: LiveStream) -> bool:
        """Save a stream whose worker has stopped, if it is not over; say whether that worked."""
        if not self.are_made_of(stream):
            return False
        await self.settle(stream)
        # Several at a time: when the service goes down all streams are saved, and none of them runs any more.
        async with self._saving:
            try:
                snapshot = await self._captured(stream)
            except CodecError as error:
                log.warning("stream %s could not be saved: %s", stream.lineage.stream_id, error)
                return False
            return await self._write(stream, snapshot, self._record(stream))

    async def load(self, stream_id: str) -> StreamSnapshot | None:
        """Find a stream's snapshot.

        Raises:
            SnapshotError: there is one, but it is damaged, foreign or of another model.
            SnapshotStoreError: the store fails.

        """
        if self.store is None:
            return None
        blob = await self._asked(self.store.load, stream_id)
        return (
            None
            if blob is None
            else await _in_thread(self._storing, unpack_stream, blob, self._model_sha256, self._offer, self._key)
        )

    async def claim(self, stream_id: str, token_generation: int, held_generation: int, *, held_here: bool) -> int:
        """Become the stream's writer; see :class:`server.snapshot_store.SnapshotStore`.

        Raises:
            FencedError: token or copy are out of date.
            SnapshotStoreError: the store fails.

        """
        if self.store is None:
            return held_generation + 1
        store = self.store
        return await self._asked(lambda: store.claim(stream_id, token_generation, held_generation, held_here=held_here))

    def is_stored(self, stream: LiveStream) -> bool:
        """Whether another process can find the stream."""
        record = self._records.get(stream.lineage.stream_id)
        return record is not None and record.is_stored

    def found(self, stream: LiveStream) -> None:
        """Note that the stream was made from its snapshot."""
        record = self._record(stream)
        record.is_stored, record.mark = True, _mark(stream)

    async def confirm(self, stream: LiveStream) -> None:
        """Make older tokens of a stored stream void, as far as the store can be reached."""
        if self.store is not None and self.is_stored(stream):
            await self._best_effort(self.store.confirm, stream.lineage.stream_id, stream.lineage.generation)

    async def forget(self, stream: LiveStream, *, and_stored: bool) -> None:
        """Forget a stream that is over here; and delete its snapshot where nobody may go on with it."""
        await self.settle(stream)
        record = self._records.pop(stream.lineage.stream_id, None)
        if and_stored and record is not None and record.is_stored and self.store is not None:
            await self._best_effort(self.store.drop, stream.lineage.stream_id, stream.lineage.generation)

    async def settle(self, stream: LiveStream) -> None:
        """Wait until no snapshot of the stream is being written."""
        record = self._records.get(stream.lineage.stream_id)
        if record is not None and record.writing is not None:
            await asyncio.wait([record.writing])

    async def keep_alive(self, streams: Iterable[LiveStream]) -> None:
        """Save streams that came to rest since; keep the snapshots of others from outliving their time; sweep away what has."""
        if self.store is None:
            return
        for stream in list(streams):
            if not stream.session.can_be_saved:
                continue
            if _mark(stream) != self._record(stream).mark:
                await stream.nudge()
            elif self.is_stored(stream):
                await self._best_effort(self.store.touch, stream.lineage.stream_id)
        if await self._best_effort(self.store.sweep) and not self._records:
            # Without streams nothing else would show that the store is well again.
            self.problem = None

    async def close(self) -> None:
        """Wait for what is being written and let go of the store."""
        async with self._making:
            if self.store is not None:
                await self._best_effort(self.store.close)
            for threads in (self._capturing, self._storing):
                await asyncio.to_thread(threads.shutdown)

    def _record(self, stream: LiveStream) -> _Record:
        return self._records.setdefault(stream.lineage.stream_id, _Record())

    async def _captured(self, stream: LiveStream) -> StreamSnapshot:
        state = await _in_thread(self._capturing, stream.session.capture)
        return StreamSnapshot(replace(stream.lineage), state, stream.window.content(), stream.window.freed)

    async def _write_and_tell(self, stream: LiveStream, snapshot: StreamSnapshot, record: _Record) -> None:
        try:
            saved = await self._write(stream, snapshot, record)
        finally:
            self._making.release()
        counters, position = snapshot.state.counters, snapshot.state.position
        if saved:
            text = server_text("checkpoint", epoch=counters.epoch, position=position, sequence=counters.sequence)
        else:
            text = server_text(
                "warning", code="not_saved", message="the stream could not be saved; it would not survive a crash"
            )
        await stream.tell(text)

    async def _write(self, stream: LiveStream, snapshot: StreamSnapshot, record: _Record) -> bool:
        try:
            await _in_thread(self._storing, self._pack_and_save, snapshot)
        except FencedError:
            if snapshot.lineage.generation < stream.lineage.generation:
                # It was this process that has claimed the stream meanwhile, for a client that came back.
                return await self._write(stream, replace(snapshot, lineage=replace(stream.lineage)), record)
            self._on_fenced(stream)
        except (OSError, CodecError) as error:
            log.warning("stream %s could not be saved: %s", snapshot.lineage.stream_id, error)
            self.problem = str(error)
        else:
            self.problem = None
            self.saved += 1
            record.is_stored = True
            return True
        return False

    def _pack_and_save(self, snapshot: StreamSnapshot) -> None:
        if self.store is not None:
            pieces = pack_stream(snapshot, self._model_sha256, self._key)
            self.store.save(snapshot.lineage.stream_id, snapshot.lineage.generation, pieces)

    async def _asked(self, call: Callable[..., Result], *arguments: object) -> Result:
        try:
            return await _in_thread(self._storing, call, *arguments)
        except OSError as cause:
            self.problem = str(cause)
            raise SnapshotStoreError("store", "a failure", "an answer", retry_after_ms=self._retry_after_ms) from cause

    async def _best_effort(self, call: Callable[..., object], *arguments: object) -> bool:
        try:
            await _in_thread(self._storing, call, *arguments)
        except (OSError, FencedError) as error:
            log.warning("the snapshot store failed: %s", error)
            self.problem = str(error)
            return False
        return True


async def _in_thread(threads: ThreadPoolExecutor, call: Callable[..., Result], *arguments: object) -> Result:
    """Run on a thread; cancelled, still wait until it has let go of what it works on."""
    running = asyncio.get_running_loop().run_in_executor(threads, lambda: call(*arguments))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise


def _mark(stream: LiveStream) -> tuple[int, ...]:
    """Tell apart where the stream stood at two times."""
    counters = stream.session.counters
    return counters.epoch, counters.sequence, counters.flushes, stream.session.position
