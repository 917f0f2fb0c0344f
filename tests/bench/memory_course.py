"""How memory goes over a long run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import numpy as np

MOST_SLOPE_MB: Final = 1.0
"""Growth per hour from which it counts as a leak."""
LEAST_HOURS: Final = 1.0
"""A shorter course, the warm-up taken off, has no slope that would mean anything."""
WARM_UP_SHARE: Final = 0.1
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


def resident_bytes(pid: int | str = "self") -> int:
    """Return what a process has in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES


class MemoryCourse:
    """Resident memory by the hour, of the run or of the stream."""

    def __init__(self) -> None:
        self._hours: list[float] = []
        self._megabytes: list[float] = []

    def add(self, hours: float, size_bytes: int) -> None:
        """Take one sample."""
        self._hours.append(hours)
        self._megabytes.append(size_bytes / 1e6)

    @property
    def slope_mb_per_hour(self) -> float | None:
        """The line through all samples but those of the warm-up; ``None`` where the run was too short for one."""
        hours, megabytes = np.array(self._hours), np.array(self._megabytes)
        if not len(hours) or hours[-1] < LEAST_HOURS:
            return None
        warm = hours >= WARM_UP_SHARE * hours[-1]
        return round(float(np.polyfit(hours[warm], megabytes[warm], 1)[0]), 4)

    def shown(self, points: int = 13) -> list[float]:
        """Return some of the samples, from the first to the last, in MB."""
        chosen = np.linspace(0, len(self._megabytes) - 1, min(points, len(self._megabytes))).round().astype(int)
        return [round(self._megabytes[index], 1) for index in chosen]

    def complaint(self) -> list[str]:
        """Say so where memory grows."""
        slope = self.slope_mb_per_hour
        return [f"memory grows by {slope} MB an hour"] if slope is not None and slope >= MOST_SLOPE_MB else []
