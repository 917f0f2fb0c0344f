"""Shards in the making: outcomes in any order become files in the order of the sources, whole or not at all."""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Final, Self

import numpy as np

from codec_core.atomic_file import atomic_output
from codec_core.corpus.formats import ShardHeader, ShardOutput, room_of
from codec_core.corpus.lanes import Outcome
from codec_core.corpus.ledger import CorpusFolder, LedgerEntry, file_facts
from codec_core.corpus.rows import ErrorEntry, Row, RowFacts, error_entry, row_facts
from codec_core.corpus.settings import Shard
from codec_core.errors import CodesFileError

_SPOOL_MEMORY_BYTES: Final = 4 << 20
_MOST_WAITING_SHARDS: Final = 4


class _OpenShard:
    """A shard some of whose sources are done; their codes wait in a file without a name once they are many."""

    def __init__(self, shard: Shard, header: ShardHeader) -> None:
        self.shard = shard
        self._dtype = np.dtype(header.dtype).newbyteorder("<")
        self._levels = header.levels
        self._spool = tempfile.SpooledTemporaryFile(max_size=_SPOOL_MEMORY_BYTES)  # noqa: SIM115 - close() closes it
        self._rows: dict[int, tuple[RowFacts, int, int]] = {}
        self._errors: dict[int, ErrorEntry] = {}

    def add(self, outcome: Outcome) -> bool:
        """Take an outcome; tell whether it was the last."""
        if outcome.error is not None:
            self._errors[outcome.index] = error_entry(outcome)
        else:
            frames = len(outcome.codes) // (self._levels * self._dtype.itemsize)
            at = self._spool.seek(0, 2)
            self._spool.write(outcome.codes)
            self._rows[outcome.index] = row_facts(outcome, frames), at, len(outcome.codes)
        return len(self._rows) + len(self._errors) == len(self.shard.sources)

    def rows(self) -> Iterator[Row]:
        """Yield the rows in order."""
        for _, (facts, at, size) in sorted(self._rows.items()):
            self._spool.seek(at)
            codes = np.frombuffer(self._spool.read(size), self._dtype).reshape(facts.frames, self._levels)
            yield Row(facts, np.ascontiguousarray(codes.T))

    def close(self) -> None:
        self._spool.close()

    def entry_counts(self) -> dict[str, int]:
        facts = [facts for facts, _, _ in self._rows.values()]
        frames, samples = sum(row.frames for row in facts), sum(row.samples for row in facts)
        return {"number": self.shard.number, "rows": len(facts), "frames": frames, "samples": samples}

    def errors(self) -> tuple[ErrorEntry, ...]:
        return tuple(error for _, error in sorted(self._errors.items()))


class Assembly:
    """Collects outcomes from any thread and commits each shard when its last source is done. A context manager.

    Leaving it cleanly waits for what is being written; leaving it by an exception drops what is not.
    """

    def __init__(self, folder: CorpusFolder, output: ShardOutput, committed: Callable[[LedgerEntry], None]) -> None:
        """Say where shards go.

        Args:
            folder: held by this run.
            output: what shards are made into.
            committed: told each entry of the ledger.

        """
        self._folder = folder
        self._room = room_of(output.form)
        self._header = output.header
        self._committed = committed
        self._open: dict[int, _OpenShard] = {}
        self._shard_of: dict[int, _OpenShard] = {}
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(_MOST_WAITING_SHARDS)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="shards")
        self._writes: list[Future[None]] = []

    def expect(self, shard: Shard) -> None:
        """Announce a shard, before any of its outcomes."""
        opened = _OpenShard(shard, self._header)
        with self._lock:
            self._open[shard.number] = opened
            for offset in range(len(shard.sources)):
                self._shard_of[shard.first + offset] = opened

    def deliver(self, outcome: Outcome) -> None:
        """Take an outcome. Blocks while several complete shards wait to be written; raises what writing one raised."""
        with self._lock:
            opened = self._shard_of.pop(outcome.index)
            if not opened.add(outcome):
                return
            del self._open[opened.shard.number]
        self._slots.acquire()
        with self._lock:
            self._raise_failures()
            self._writes.append(self._writer.submit(self._write, opened))

    def _write(self, opened: _OpenShard) -> None:
        try:
            entry = self._entry(opened)
            self._folder.commit(entry)
            self._committed(entry)
        finally:
            opened.close()
            self._slots.release()

    def _entry(self, opened: _OpenShard) -> LedgerEntry:
        names = [opened.shard.stem + suffix for suffix in self._room.SUFFIXES]
        with contextlib.ExitStack() as stack:
            temporary = [
                stack.enter_context(atomic_output(self._folder.path / name, replace=True, error=CodesFileError))
                for name in names
            ]
            self._room.write_shard(temporary, opened.rows(), self._header)
            files = tuple(file_facts(path, name) for path, name in zip(temporary, names, strict=True))
        return LedgerEntry(**opened.entry_counts(), files=files, errors=opened.errors())

    def _raise_failures(self) -> None:
        for write in [write for write in self._writes if write.done()]:
            self._writes.remove(write)
            write.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._writer.shutdown(wait=True, cancel_futures=error is not None)
        for opened in self._open.values():
            opened.close()
        if error is None:
            for write in self._writes:
                write.result()
