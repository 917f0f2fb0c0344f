"""Rates, by the token bucket: so much per second for ever, and some seconds' worth at once."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from server.errors import HandshakeRateError

BURST_S: Final = 4
"""So many seconds' worth may come at once, as it does after the network has held it up."""
MOST_CLIENTS: Final = 65_536
"""Clients remembered at a time; the one not heard of for longest is forgotten first."""


class RateLimit:
    """Counts events of one kind from one source.

    Args:
        per_s: events per second that may go on for ever; :data:`BURST_S` times as many may come at once.
        clock_s: seconds, never going back.
        begin_s: so many seconds' worth may come at the beginning; less than :data:`BURST_S`, and coming anew gains nothing.

    """

    def __init__(self, per_s: int, clock_s: Callable[[], float] = time.monotonic, begin_s: float = BURST_S) -> None:
        self._per_s = per_s
        self._clock_s = clock_s
        self._left = per_s * begin_s
        self._counted_s = clock_s()

    def take(self) -> float:
        """Count one event and return 0, or leave it uncounted and return the seconds until it may be counted."""
        now_s = self._clock_s()
        self._left = min(self._left + (now_s - self._counted_s) * self._per_s, float(self._per_s * BURST_S))
        self._counted_s = now_s
        if self._left < 1:
            return (1 - self._left) / self._per_s
        self._left -= 1
        return 0.0


class HandshakeGate:
    """Counts WebSocket handshakes by client. Costs little, so that it can stand before everything else.

    Args:
        per_s: handshakes per second and client.
        clock_s: seconds, never going back.

    """

    def __init__(self, per_s: int, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._clock_s = clock_s
        self._limits: OrderedDict[str, RateLimit] = OrderedDict()

    def pass_one(self, client: str) -> None:
        """Count a handshake.

        Raises:
            HandshakeRateError: it is one too many.

        """
        limit = self._limits.get(client) or RateLimit(self._per_s, self._clock_s)
        self._limits[client] = limit
        self._limits.move_to_end(client)
        if len(self._limits) > MOST_CLIENTS:
            self._limits.popitem(last=False)
        wait_s = limit.take()
        if wait_s:
            expected = f"at most {self._per_s} per second, {self._per_s * BURST_S} at once"
            raise HandshakeRateError(f"handshakes from {client}", "more", expected, retry_after_ms=int(wait_s * 1000) + 1)
