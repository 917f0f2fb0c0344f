"""How far a run is: counters that its threads add to and a display reads."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from codec_core.corpus.ledger import LedgerEntry


@dataclass(frozen=True)
class Counts:
    """What is done of a corpus at one time."""

    inputs: int
    """Sources in all."""
    done: int
    """Of these encoded or failed, earlier runs included."""
    rows: int
    errors: int
    frames: int
    """Encoded by this run."""
    shards: int
    """Committed, earlier runs included."""
    samples: int
    """At 24 kHz, in committed shards."""
    seconds: float
    """Since this run began."""
    already_done: int
    """Sources that earlier runs had done."""


class Tally:
    """Counters of one run. Safe to use from any thread."""

    def __init__(self, inputs: int) -> None:
        """Start from nothing.

        Args:
            inputs: sources in all.

        """
        self._lock = threading.Lock()
        self._inputs = inputs
        self._rows = self._errors = self._frames = self._shards = self._samples = self._already_done = 0
        self._began = time.monotonic()

    def resume(self, entry: LedgerEntry) -> None:
        """Count a shard that an earlier run committed."""
        with self._lock:
            self._rows += entry.rows
            self._errors += len(entry.errors)
            self._already_done += entry.rows + len(entry.errors)
        self.commit(entry)

    def commit(self, entry: LedgerEntry) -> None:
        """Count a shard; its sources were counted one by one."""
        with self._lock:
            self._shards += 1
            self._samples += entry.samples

    def count_elsewhere(self, entry: LedgerEntry) -> None:
        """Count a shard that another process of this run has committed."""
        with self._lock:
            self._rows += entry.rows
            self._errors += len(entry.errors)
            self._frames += entry.frames
        self.commit(entry)

    def source_done(self, *, failed: bool) -> None:
        """Count a source."""
        with self._lock:
            self._errors += failed
            self._rows += not failed

    def add_frames(self, frames: int) -> None:
        """Count encoded frames."""
        with self._lock:
            self._frames += frames

    def counts(self) -> Counts:
        """Return all counters as of now."""
        with self._lock:
            return Counts(
                inputs=self._inputs,
                done=self._rows + self._errors,
                rows=self._rows,
                errors=self._errors,
                frames=self._frames,
                shards=self._shards,
                samples=self._samples,
                seconds=time.monotonic() - self._began,
                already_done=self._already_done,
            )
