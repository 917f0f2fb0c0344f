"""A bounded queue from the reader of a connection to its worker: full means that nothing more is read from the socket."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Inbox(Generic[Item]):
    """Items in order, bounded by the bytes they hold and by their number. One reader, one worker, one event loop.

    Args:
        max_bytes: once this much waits, :meth:`put` waits too. A single larger item is still taken when nothing else waits.
        max_items: the same for the number of items.

    """

    def __init__(self, max_bytes: int, max_items: int) -> None:
        self._max_bytes = max_bytes
        self._max_items = max_items
        self._items: deque[tuple[Item, int]] = deque()
        self._changed = asyncio.Event()
        self.waiting_bytes = 0

    def __len__(self) -> int:
        return len(self._items)

    async def put(self, item: Item, size_bytes: int = 0) -> None:
        """Append an item as soon as there is room for it."""
        while self._items and (self.waiting_bytes + size_bytes > self._max_bytes or len(self._items) >= self._max_items):
            self._changed.clear()
            await self._changed.wait()
        self._items.append((item, size_bytes))
        self.waiting_bytes += size_bytes
        self._changed.set()

    async def get(self) -> Item:
        """Take the oldest item, waiting for one."""
        while not self._items:
            self._changed.clear()
            await self._changed.wait()
        item, size_bytes = self._items.popleft()
        self.waiting_bytes -= size_bytes
        self._changed.set()
        return item
