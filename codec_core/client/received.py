"""Answers on their way to whoever reads them: a queue with a bound and an end."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class EndedError(Exception):
    """Nothing more comes: the queue ended in order."""


class ReceivedQueue(Generic[T]):
    """First in, first out; who puts waits for room, who gets for an item. Used from one event loop.

    Args:
        most: items that may wait, 1 or more.

    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._items: deque[T] = deque()
        self._changed = asyncio.Condition()
        self._ended = False
        self._error: Exception | None = None
        self._discarding = False

    def __len__(self) -> int:
        return len(self._items)

    async def put(self, item: T) -> None:
        """Add an item; waits while there is no room."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self._items) < self._most or self._discarding or self._ended)
            if not (self._discarding or self._ended):
                self._items.append(item)
                self._changed.notify_all()

    async def get(self) -> T:
        """Take the oldest item. What came before the end is still handed out after it.

        Raises:
            EndedError: nothing more comes.
            Exception: nothing more comes, for the reason that was given to :meth:`end`.

        """
        async with self._changed:
            await self._changed.wait_for(lambda: self._items or self._ended)
            if self._items:
                item = self._items.popleft()
                self._changed.notify_all()
                return item
            if self._error is not None:
                raise self._error
            raise EndedError

    async def end(self, error: Exception | None = None) -> None:
        """Say that nothing more comes; the first who says so gives the reason."""
        async with self._changed:
            if not self._ended:
                self._ended, self._error = True, error
            self._changed.notify_all()

    async def discard(self) -> None:
        """Throw away what waits and what comes."""
        async with self._changed:
            self._discarding = True
            self._items.clear()
            self._changed.notify_all()
