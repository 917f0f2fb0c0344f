"""How many control messages a stream may send: each costs the service a turn, and none of them needs to come often."""

from __future__ import annotations

import time
from collections.abc import Callable

from server.errors import ControlRateError
from server.rate_limit import BURST_S, RateLimit

__all__ = ["BURST_S", "ControlAllowance"]


class ControlAllowance:
    """Counts the ``flush``, ``reset`` and ``ping`` messages of one stream.

    Args:
        per_s: messages per second that may go on forever; ``BURST_S`` times as many may come at once.
        clock_s: seconds, never going back.

    """

    def __init__(self, per_s: int, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._limit = RateLimit(per_s, clock_s)

    def take(self) -> None:
        """Count one message.

        Raises:
            ControlRateError: it is one too many.

        """
        if self._limit.take():
            expected = f"at most {self._per_s} per second, {self._per_s * BURST_S} at once"
            raise ControlRateError("flush, reset and ping", found="more of them", expected=expected)
