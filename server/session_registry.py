"""Who is let in: places for streams and for conversions, each with a cap, and the way down when the service drains.

A place is held by a lease, a context manager, so that no way out of a session can leave it taken.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, Protocol

from server.errors import CapacityError, DrainingError

LAST_WORDS_MS = 5_000
"""Time to save the streams that were ended, and for their close frames."""

Kind = Literal["stream", "conversion"]


class Drainable(Protocol):
    """What the registry needs of a holder of a place when the service goes down."""

    def go_away(self, time_left_ms: int) -> None:
        """Tell the client that the service goes down; returns at once."""

    def stop(self, error: DrainingError) -> None:
        """End now, with this error; returns at once."""


@dataclass(eq=False)
class Lease:
    """One place, taken."""

    session_id: str
    kind: Kind
    holder: Drainable | None
    opened_s: float = field(default_factory=time.monotonic)


class SessionRegistry:
    """Counts places and refuses by name. Used from one event loop.

    Args:
        max_sessions: streams at the same time.
        max_conversions: REST conversions at the same time.
        retry_after_ms: what a refused client is told to wait.

    """

    def __init__(self, *, max_sessions: int, max_conversions: int, retry_after_ms: int) -> None:
        self._caps: dict[Kind, int] = {"stream": max_sessions, "conversion": max_conversions}
        self._leases: dict[Kind, dict[str, Lease]] = {"stream": {}, "conversion": {}}
        self._retry_after_ms = retry_after_ms
        self._changed = asyncio.Event()
        self._hurried = False
        self.draining = False
        self.refused = 0

    def count(self, kind: Kind) -> int:
        """Count the places of this kind that are taken."""
        return len(self._leases[kind])

    @contextlib.contextmanager
    def lease(self, kind: Kind, holder: Drainable | None = None) -> Iterator[Lease]:
        """Hold one place for as long as the context lasts.

        Raises:
            DrainingError: the service is going down.
            CapacityError: every place of this kind is taken.

        """
        self._admit(kind)
        lease = Lease(secrets.token_hex(8), kind, holder)
        self._leases[kind][lease.session_id] = lease
        try:
            yield lease
        finally:
            del self._leases[kind][lease.session_id]
            self._changed.set()

    async def drain(self, time_left_ms: int) -> None:
        """Take nothing new, tell every stream, wait until all have ended or the time is over, then end the rest.

        Args:
            time_left_ms: how long streams may go on.

        """
        self.draining = True
        for lease in self._holders():
            lease.go_away(time_left_ms)
        await self._empty(time_left_ms)
        for lease in self._holders():
            lease.stop(self._draining_error())
        await self._empty(LAST_WORDS_MS)

    def hurry(self) -> None:
        """Cut the waiting of :meth:`drain` short."""
        self._hurried = True
        self._changed.set()

    def _admit(self, kind: Kind) -> None:
        if self.draining:
            self.refused += 1
            raise self._draining_error()
        if self.count(kind) >= self._caps[kind]:
            self.refused += 1
            found = f"{self.count(kind)} of {self._caps[kind]} places taken"
            raise CapacityError(f"{kind}s", found, "a free place", retry_after_ms=self._retry_after_ms)

    def _draining_error(self) -> DrainingError:
        found, expected = "one that is going down", "one that takes new work"
        return DrainingError("service", found, expected, retry_after_ms=self._retry_after_ms)

    def _holders(self) -> list[Drainable]:
        return [lease.holder for lease in self._leases["stream"].values() if lease.holder is not None]

    async def _empty(self, time_left_ms: int) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(time_left_ms / 1000):
                while self.count("stream") and not self._hurried:
                    self._changed.clear()
                    await self._changed.wait()
