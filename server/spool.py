"""Where request bodies and answers wait: in memory while short, then in a temporary file, all of them within one budget."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Callable
from types import TracebackType
from typing import IO, Any, Self, TypeVar

from server.errors import CapacityError

Result = TypeVar("Result")


async def in_thread(call: Callable[..., Result], *arguments: Any) -> Result:
    """Run a blocking call on a thread. Cancelled, it waits for the call to end, so that nothing is taken away under it."""
    running = asyncio.get_running_loop().run_in_executor(None, call, *arguments)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        raise


class SpoolBudget:
    """How many bytes all spools may hold together. Used from one event loop.

    Args:
        limit_bytes: the most.
        retry_after_ms: what a refused client is told to wait.

    """

    def __init__(self, limit_bytes: int, retry_after_ms: int) -> None:
        self._limit_bytes = limit_bytes
        self._retry_after_ms = retry_after_ms
        self.held_bytes = 0

    def take(self, size_bytes: int) -> None:
        """Hold more.

        Raises:
            CapacityError: there is no room for it.

        """
        if self.held_bytes + size_bytes > self._limit_bytes:
            raise self.full(f"{self.held_bytes} of {self._limit_bytes} bytes held")
        self.held_bytes += size_bytes

    def give_back(self, size_bytes: int) -> None:
        """Hold less."""
        self.held_bytes -= size_bytes

    def full(self, found: str) -> CapacityError:
        """Make the error that says so."""
        return CapacityError("spool", found, "room for this body or answer", retry_after_ms=self._retry_after_ms)


class Spool:
    """One body or answer, growing at its end; a context manager. One writer and one reader may use it at the same time.

    Args:
        budget: what its bytes count against until it is closed.
        memory_bytes: how much of it stays in memory; beyond that, all of it moves to a temporary file.

    """

    def __init__(self, budget: SpoolBudget, memory_bytes: int) -> None:
        self._budget = budget
        self._memory_bytes = memory_bytes
        self._lock = threading.Lock()
        self._file = tempfile.SpooledTemporaryFile(max_size=max(1, memory_bytes), prefix="mimi-")  # noqa: SIM115 - closed by close()
        self.size_bytes = 0

    @property
    def file(self) -> IO[bytes]:
        """The bytes as a file that can be sought in, for a parser or an encoder of sound that has it to itself."""
        return self._file

    async def append(self, data: bytes) -> None:
        """Add bytes at the end; those that go to disk go on a thread.

        Raises:
            CapacityError: the budget, or the disk, has no room for them.

        """
        self._budget.take(len(data))
        self.size_bytes += len(data)
        if self.size_bytes <= self._memory_bytes:
            self._write(data)
            return
        try:
            await in_thread(self._write, data)
        except OSError as cause:
            raise self._budget.full(cause.strerror or type(cause).__name__) from cause

    def read(self, offset_bytes: int, size_bytes: int) -> bytes:
        """Read a part, shorter where the end comes first. Blocks."""
        with self._lock:
            self._file.seek(offset_bytes)
            return self._file.read(size_bytes)

    def adopt(self) -> None:
        """Count what somebody else wrote into :attr:`file`.

        Raises:
            CapacityError: the budget has no room for it.

        """
        size_bytes = self._file.seek(0, 2)
        self._budget.take(size_bytes - self.size_bytes)
        self.size_bytes = size_bytes

    def close(self) -> None:
        """Drop everything; harmless when repeated."""
        with self._lock:
            self._file.close()
        self._budget.give_back(self.size_bytes)
        self.size_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _write(self, data: bytes) -> None:
        with self._lock:
            self._file.seek(0, 2)
            self._file.write(data)
