"""How fast messages of WebSockets are taken, so that nobody's many small ones make the others wait.

Every message and every control frame costs the event loop time, whatever is in it. A live stream sends a few dozen per second;
those are taken as they come. Whoever sends more, as one that sends a recording does, shares with all others who do a rate that
leaves the loop most of its time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from server.rate_limit import BURST_S, RateLimit

LIVE_PER_S: Final = 100
"""More messages than a live stream sends: frames of 20 ms, acknowledgements and pings."""
LIVE_BEGIN_S: Final = 0.5
"""A connection begins with so many seconds' worth of those; with more, coming again and again would be a way around."""
TOGETHER_S: Final = 0.02
"""So many seconds' worth of the shared rate may be taken at once: a wait costs as much as some messages do."""


class Turns:
    """Gives turns to one source or many, in the order in which they ask.

    Args:
        per_s: turns per second.
        at_once_s: so many seconds' worth of turns may be taken at once, after that much rest and at the beginning.
        clock_s: seconds, never going back.

    """

    def __init__(self, per_s: int, at_once_s: float, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._turn_s = 1 / per_s
        self._at_once_s = at_once_s
        self._clock_s = clock_s
        self._next_s = clock_s() - at_once_s

    def take(self, count: int = 1) -> float:
        """Take the next turns, one or more in a row, and return how many seconds away the first is."""
        now_s = self._clock_s()
        turn_s = max(self._next_s, now_s - self._at_once_s)
        self._next_s = turn_s + count * self._turn_s
        return max(0.0, turn_s - now_s)


def shared_turns(per_s: int) -> Turns:
    """Make what all connections of a service share: turns for messages beyond :data:`LIVE_PER_S` of one of them."""
    return Turns(per_s, TOGETHER_S)


class MessagePace:
    """Says when one connection's next message may be taken.

    Args:
        per_s: most messages per second of this connection.
        surplus: what all connections share (:func:`shared_turns`).
        clock_s: seconds, never going back.

    """

    def __init__(self, per_s: int, surplus: Turns, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._most = Turns(per_s, BURST_S, clock_s)
        self._live = RateLimit(min(per_s, LIVE_PER_S), clock_s, LIVE_BEGIN_S)
        self._surplus = surplus

    def take(self) -> float:
        """Count a message and return the seconds to wait before it is taken."""
        wait_s = self._most.take()
        return max(wait_s, self._surplus.take()) if self._live.take() else wait_s

    def take_parsed(self, frames: int) -> float:
        """Count frames that were parsed and become no message of their own; return the seconds to wait before the next."""
        wait_s = self._most.take(frames)
        surplus = sum(self._live.take() > 0 for _ in range(frames))
        return max(wait_s, self._surplus.take(surplus)) if surplus else wait_s
