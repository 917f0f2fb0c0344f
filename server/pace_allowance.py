"""How fast a stream is read: a client that sends faster than it may is made to wait, and loses nothing."""

from __future__ import annotations

import time
from collections.abc import Callable

BURST_S = 5.0
"""Audio that may come at once on top, as it does after the network has held it up or a client comes back."""


class PaceAllowance:
    """Counts the real time of what one connection sends.

    Args:
        max_pace: times real time that may go on forever; ``None`` for any.
        clock_s: seconds, never going back.

    """

    def __init__(self, max_pace: int | None, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._max_pace = max_pace
        self._clock_s = clock_s
        self._left_s = BURST_S
        self._counted_s = clock_s()

    def take(self, audio_s: float) -> float:
        """Count what came and return how many seconds to wait before the next is read; 0 within the allowance."""
        if self._max_pace is None:
            return 0.0
        now_s = self._clock_s()
        self._left_s = min(self._left_s + (now_s - self._counted_s) * self._max_pace, BURST_S) - audio_s
        self._counted_s = now_s
        return max(0.0, -self._left_s / self._max_pace)
