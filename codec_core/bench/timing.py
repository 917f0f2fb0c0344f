"""Timing of calls: wall and CPU time of each, and what to say of many."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

FEWEST_CALLS: Final = 5


@dataclass(frozen=True)
class CallTimes:
    """Times of single calls, in milliseconds: by the clock, and of all threads of this process together."""

    wall_ms: tuple[float, ...]
    cpu_ms: tuple[float, ...]

    @property
    def wall_ms_median(self) -> float:
        """Half of the calls took less."""
        return float(np.median(self.wall_ms))

    @property
    def wall_ms_p95(self) -> float:
        """One call in twenty took more."""
        return float(np.percentile(self.wall_ms, 95))

    @property
    def cpu_ms_median(self) -> float:
        """What a call costs, whatever else runs on the machine."""
        return float(np.median(self.cpu_ms))


def time_calls(step: Callable[[int], Any], seconds: float) -> CallTimes:
    """Call ``step(0)`` once untimed, then ``step(i)`` until ``seconds`` have passed and at least :data:`FEWEST_CALLS` times."""
    step(0)
    wall_ms: list[float] = []
    cpu_ms: list[float] = []
    stop = time.perf_counter() + seconds
    while len(wall_ms) < FEWEST_CALLS or time.perf_counter() < stop:
        wall, cpu = time.perf_counter(), time.process_time()
        step(len(wall_ms))
        cpu_ms.append((time.process_time() - cpu) * 1000)
        wall_ms.append((time.perf_counter() - wall) * 1000)
    return CallTimes(tuple(wall_ms), tuple(cpu_ms))
