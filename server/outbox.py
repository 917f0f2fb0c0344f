"""A bounded queue of messages from a stream to the connection that carries it; a connection that is gone swallows them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable

MAX_BYTES = 65_536
"""More than this waits for the client to read; a single larger message still passes."""
MAX_MESSAGES = 256


class Outbox:
    """Messages in order, and at last the end. Many writers, one reader, one event loop."""

    def __init__(self) -> None:
        self._messages: deque[str | bytes] = deque()
        self._bytes = 0
        self._changed = asyncio.Event()
        self._closed = False
        self._finished = False
        self._failure: Exception | None = None

    @property
    def waiting_bytes(self) -> int:
        """Bytes that wait to be sent."""
        return self._bytes

    def preload(self, messages: Iterable[str | bytes]) -> None:
        """Append messages at once, however many: what a client that comes back is owed."""
        for message in messages:
            self._append(message)

    async def put(self, message: str | bytes) -> None:
        """Append a message as soon as there is room for it; after :meth:`close` it goes nowhere."""
        while self._messages and not self._closed and self._is_full(len(message)):
            self._changed.clear()
            await self._changed.wait()
        if not self._closed:
            self._append(message)

    def finish(self, failure: Exception | None) -> None:
        """Say that nothing more comes, and why."""
        self._finished, self._failure = True, failure
        self._changed.set()

    def close(self) -> None:
        """Let all writers go: nobody reads any more."""
        self._closed = True
        self._messages.clear()
        self._bytes = 0
        self._changed.set()

    async def get(self) -> str | bytes | None:
        """Take the oldest message, waiting for one; ``None`` after the last.

        Raises:
            Exception: what :meth:`finish` was given, after the last.

        """
        while not self._messages:
            if self._finished:
                if self._failure is not None:
                    raise self._failure
                return None
            self._changed.clear()
            await self._changed.wait()
        message = self._messages.popleft()
        self._bytes -= len(message)
        self._changed.set()
        return message

    def _append(self, message: str | bytes) -> None:
        self._messages.append(message)
        self._bytes += len(message)
        self._changed.set()

    def _is_full(self, size_bytes: int) -> bool:
        return self._bytes + size_bytes > MAX_BYTES or len(self._messages) >= MAX_MESSAGES
