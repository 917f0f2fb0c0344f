"""Who is let in: places for streams and for conversions, each with a cap, and the way down when the service drains.

A place is held by a lease, a context manager, so that no way out of a session can leave it taken; :mod:`server.watchdog` looks.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, Protocol

from codec_core.errors import CodecError
from server import tracing
from server.admission import Admission, Demand
from server.errors import AddressCapacityError, CapacityError, DrainingError
from server.logs import bind_to_log
from server.metrics import Metrics

Kind = Literal["stream", "conversion"]


class Drainable(Protocol):
    """What the registry needs of a holder of a place: what waits in it, and that it ends when the service goes down."""

    @property
    def queued_frames(self) -> float:
        """Frames that were read and are not answered yet."""

    @property
    def unsent_bytes(self) -> int:
        """Bytes of answers that wait to be sent."""

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
    client: str
    owner: asyncio.Task[object] | None
    admission: Admission
    metrics: Metrics
    opened_s: float = field(default_factory=time.monotonic)
    demand: Demand = ()

    def load(self, demand: Demand, *, resumed: bool = False) -> None:
        """Say what the holder will ask of the engine, as soon as that is known; given back with the place.

        Args:
            demand: its steps.
            resumed: it was let in before, and is not refused now; nor counted again where it came with its place.

        Raises:
            OverloadedError: it would make frames late.

        """
        if resumed and self.demand:
            self.metrics.admitted(self.kind)
            return
        try:
            self.admission.admit(demand, unasked=resumed)
        except CodecError as error:
            self.metrics.refused(self.kind, error.code)
            raise
        self.demand += demand
        self.metrics.admitted(self.kind)

    @property
    def is_leaked(self) -> bool:
        """Whether whoever took the place has ended without giving it back."""
        return self.owner is not None and self.owner.done()


class SessionRegistry:
    """Counts places and refuses by name. Used from one event loop.

    Args:
        admission: says whether the engine can take another.
        metrics: is told of who is let in and who is not.
        max_sessions: streams at the same time.
        max_address_sessions: streams at the same time from one client.
        max_conversions: REST conversions at the same time.
        retry_after_ms: what a refused client is told to wait.

    """

    def __init__(
        self,
        admission: Admission,
        metrics: Metrics,
        *,
        max_sessions: int,
        max_address_sessions: int,
        max_conversions: int,
        retry_after_ms: int,
    ) -> None:
        self._admission = admission
        self._metrics = metrics
        self._caps: dict[Kind, int] = {"stream": max_sessions, "conversion": max_conversions}
        self._most_per_address = max_address_sessions
        self._leases: dict[Kind, dict[str, Lease]] = {"stream": {}, "conversion": {}}
        self._waiting: set[Drainable] = set()
        self._clients: Counter[str] = Counter()
        self._retry_after_ms = retry_after_ms
        self._changed = asyncio.Event()
        self._hurried = False
        self.draining = False
        self.refused = 0

    def count(self, kind: Kind) -> int:
        """Count the places of this kind that are taken."""
        return len(self._leases[kind])

    @property
    def queued_frames(self) -> float:
        """Frames that streams have read and not answered yet."""
        return sum(holder.queued_frames for holder in self._holders())

    @property
    def unsent_bytes(self) -> int:
        """Bytes of answers that wait for clients to read."""
        return sum(holder.unsent_bytes for holder in self._holders())

    @contextlib.contextmanager
    def waiting(self, holder: Drainable) -> Iterator[None]:
        """Know somebody who has not said yet what a place is wanted for: without one, but stopped when the service drains.

        Raises:
            DrainingError: the service is going down.

        """
        if self.draining:
            raise self.draining_error()
        self._waiting.add(holder)
        try:
            yield
        finally:
            self._waiting.discard(holder)

    @contextlib.contextmanager
    def lease(
        self, kind: Kind, holder: Drainable | None = None, *, client: str = "", in_place_of: object | None = None
    ) -> Iterator[Lease]:
        """Hold one place for as long as the context lasts; what this task logs from now on carries its session id.

        Args:
            kind: what for.
            holder: who is told when the service drains.
            client: who for, as :func:`server.client_address.client_of` names it.
            in_place_of: a holder whose place, if it has one, goes over to the new one, with its demand, so that none need be
                free. Its owner has to end it.

        Raises:
            DrainingError: the service is going down.
            CapacityError: every place of this kind is taken.
            AddressCapacityError: every place that this client may have is taken.

        """
        replaced = self._lease_of(kind, in_place_of)
        self.require_place(kind, client, replaced)
        lease = self._taken(kind, holder, client)
        if replaced is not None:
            self._hand_over(replaced, lease)
        bind_to_log(session=lease.session_id)
        with tracing.session_span(kind, lease.session_id) as span:
            try:
                yield lease
            finally:
                span.set_demand(lease.demand)
                self.give_back(lease)

    def require_place(self, kind: Kind, client: str = "", replaced: Lease | None = None) -> None:
        """Refuse as :meth:`lease` does, where there is no place; takes none. That of ``replaced``, if given, counts as free.

        Raises:
            DrainingError, CapacityError, AddressCapacityError: see :meth:`lease`.

        """
        try:
            self._admit(kind, client, replaced)
        except CodecError as error:
            self.refused += 1
            self._metrics.refused(kind, error.code)
            raise

    def give_back(self, lease: Lease) -> bool:
        """Free a place, if it is not free already; return whether it was taken."""
        if self._leases[lease.kind].pop(lease.session_id, None) is None:
            return False
        self._admission.release(lease.demand)
        if lease.kind == "stream":
            self._clients[lease.client] -= 1
            self._clients = +self._clients
        self._changed.set()
        return True

    def leaked(self) -> list[Lease]:
        """Return the places whose holders have ended without giving them back."""
        return [lease for leases in self._leases.values() for lease in leases.values() if lease.is_leaked]

    async def drain(self, time_left_ms: int, last_words_ms: int) -> None:
        """Take nothing new, tell every stream, wait until all have ended or the time is over, then end the rest.

        Args:
            time_left_ms: how long streams may go on.
            last_words_ms: time to save those that were ended, and for their close frames.

        """
        self.draining = True
        for holder in list(self._waiting):
            holder.stop(self.draining_error())
        for holder in self._holders():
            holder.go_away(time_left_ms)
        await self._empty(time_left_ms)
        for holder in self._holders():
            holder.stop(self.draining_error())
        await self._empty(last_words_ms)

    def hurry(self) -> None:
        """Cut the waiting of :meth:`drain` short."""
        self._hurried = True
        self._changed.set()

    def draining_error(self) -> DrainingError:
        """Make the error for whoever comes, or still is there, while the service goes down."""
        found, expected = "one that is going down", "one that takes new work"
        return DrainingError("service", found, expected, retry_after_ms=self._retry_after_ms)

    def _taken(self, kind: Kind, holder: Drainable | None, client: str) -> Lease:
        try:
            owner = asyncio.current_task()
        except RuntimeError:
            owner = None
        lease = Lease(secrets.token_hex(8), kind, holder, client, owner, self._admission, self._metrics)
        self._leases[kind][lease.session_id] = lease
        if kind == "stream":
            self._clients[client] += 1
        return lease

    def _lease_of(self, kind: Kind, holder: object | None) -> Lease | None:
        if holder is None:
            return None
        return next((lease for lease in self._leases[kind].values() if lease.holder is holder), None)

    def _hand_over(self, replaced: Lease, lease: Lease) -> None:
        """Let the one's place and demand be the other's; nobody can come between."""
        self.give_back(replaced)
        self._admission.admit(replaced.demand, unasked=True)
        lease.demand = replaced.demand

    def _admit(self, kind: Kind, client: str, replaced: Lease | None) -> None:
        if self.draining:
            raise self.draining_error()
        if replaced is None and self.count(kind) >= self._caps[kind]:
            found = f"{self.count(kind)} of {self._caps[kind]} places taken"
            raise CapacityError(f"{kind}s", found, "a free place", retry_after_ms=self._retry_after_ms)
        is_clients_own = replaced is not None and replaced.client == client
        if kind == "stream" and client and not is_clients_own and self._clients[client] >= self._most_per_address:
            found = f"{self._clients[client]} of {self._most_per_address} places taken"
            expected = "a free place (a proxy in front is to be named in MIMI_TRUSTED_PROXIES)"
            raise AddressCapacityError(f"streams from {client}", found, expected, retry_after_ms=self._retry_after_ms)

    def _holders(self) -> list[Drainable]:
        return [lease.holder for lease in self._leases["stream"].values() if lease.holder is not None]

    async def _empty(self, time_left_ms: int) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(time_left_ms / 1000):
                while self.count("stream") and not self._hurried:
                    self._changed.clear()
                    await self._changed.wait()
