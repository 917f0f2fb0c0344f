"""Which source runs next, and on which worker: in order, read ahead, and shared out evenly."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from codec_core.corpus.feed import PrefetchedFeed, SourceFeed
from codec_core.corpus.inputs import Source


@dataclass(frozen=True)
class Job:
    """A source on its way through."""

    index: int
    """Place in the whole list of sources."""
    source: Source
    feed: PrefetchedFeed


class Schedule:
    """Hands sources out to workers. Safe to use from any thread."""

    def __init__(
        self,
        sources: Iterable[tuple[int, Source]],
        count: int,
        *,
        workers: int,
        frame_samples: int,
        readers: ThreadPoolExecutor,
        ahead: int,
    ) -> None:
        """Say what there is to do.

        Args:
            sources: each with its index; taken in order, as it is needed.
            count: how many they are.
            workers: how many will ask.
            frame_samples: length of a frame.
            readers: threads that read.
            ahead: sources that are opened and being read before anyone asks for them.

        """
        self._sources = iter(sources)
        self._left = count
        self._workers = workers
        self._frame_samples = frame_samples
        self._readers = readers
        self._ahead = ahead
        self._started: deque[Job] = deque()
        self._running = 0
        self._lock = threading.Lock()

    def take(self, busy_lanes: int) -> Job | None:
        """Return the next source for a worker with so many busy lanes.

        None: nothing is left, or the worker has its fair share of what is; a worker without any gets one while there are any.
        """
        with self._lock:
            fair = -(-(self._left + self._running) // self._workers)
            if not self._left or busy_lanes >= fair:
                return None
            self._read_ahead()
            self._left -= 1
            self._running += 1
            job = self._started.popleft()
            self._read_ahead()
            return job

    def done(self) -> None:
        """Say that a source that was taken is through."""
        with self._lock:
            self._running -= 1

    def _read_ahead(self) -> None:
        while len(self._started) < min(max(1, self._ahead), self._left):
            index, source = next(self._sources)
            self._started.append(Job(index, source, PrefetchedFeed(SourceFeed(source, self._frame_samples), self._readers)))
