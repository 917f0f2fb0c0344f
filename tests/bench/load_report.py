"""What a load run found."""

from __future__ import annotations

import time
from array import array
from collections import Counter
from typing import Any, Final

import numpy as np
from rich.console import Console
from rich.table import Table

FRAME_MS: Final = 80.0
WINDOW_S: Final = 5.0
"""Each line of the course of the run."""
PERCENTILES: Final = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "max": 100.0}


class LoadReport:
    """Counts, by all sessions together."""

    def __init__(self, tried: int) -> None:
        self.tried = tried
        self.admitted = 0
        self.sent_frames = 0
        self.wrong_frames = 0
        self.lost_frames = 0
        self.client_late_s = array("d")
        self._started_s = time.monotonic()
        self._at_s, self._latency_s = array("d"), array("d")
        self._refusals: Counter[str] = Counter()
        self._ends: Counter[str] = Counter()
        self._warnings: Counter[str] = Counter()

    def frame(self, at_s: float, latency_s: float) -> None:
        """Count an answer."""
        self._at_s.append(at_s - self._started_s)
        self._latency_s.append(latency_s)

    def refused(self, code: str) -> None:
        """Count a session that was not let in."""
        self._refusals[code] += 1

    def ended(self, code: str) -> None:
        """Count a session that the service ended."""
        self._ends[code] += 1

    def warned(self, code: str) -> None:
        """Count a warning."""
        self._warnings[code] += 1

    def result(self) -> dict[str, Any]:
        """Return everything, as JSON holds it."""
        latency_ms = np.array(self._latency_s) * 1000
        return {
            "sessions_tried": self.tried,
            "sessions_admitted": self.admitted,
            "refusals": dict(self._refusals),
            "ended_by_the_service": dict(self._ends),
            "warnings": dict(self._warnings),
            "frames_sent": self.sent_frames,
            "frames_received": len(latency_ms),
            "wrong_frames": self.wrong_frames,
            "lost_frames": self.lost_frames,
            "latency_ms": percentiles(latency_ms),
            "late_frames": int((latency_ms > FRAME_MS).sum()),
            "client_late_ms": percentiles(np.array(self.client_late_s) * 1000),
            "course": self._course(np.array(self._at_s), latency_ms),
        }

    def _course(self, at_s: Any, latency_ms: Any) -> list[dict[str, Any]]:
        windows = (at_s // WINDOW_S).astype(int)
        return [
            {
                "from_s": window * WINDOW_S,
                "sessions": round(float((windows == window).sum()) * FRAME_MS / 1000 / WINDOW_S, 1),
                **percentiles(latency_ms[windows == window]),
            }
            for window in np.unique(windows).tolist()
        ]


def percentiles(values_ms: Any) -> dict[str, float | None]:
    return {name: round(float(np.percentile(values_ms, at)), 2) if len(values_ms) else None for name, at in PERCENTILES.items()}


def print_report(result: dict[str, Any]) -> None:
    """Print the tables: the course of the run, then the whole."""
    console = Console(highlight=False)
    course = Table("from s", "sessions", *PERCENTILES, box=None, header_style="bold", title="latency in ms, as it went")
    for line in result["course"]:
        course.add_row(f"{line['from_s']:.0f}", f"{line['sessions']}", *(f"{line[name]:.1f}" for name in PERCENTILES))
    console.print(course)
    whole = Table(box=None, show_header=False)
    for name, value in result.items():
        if name != "course":
            whole.add_row(name.replace("_", " "), _shown(value))
    console.print(whole)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(part)}" for name, part in value.items()) or "none"
    return f"{value:.1f}" if isinstance(value, float) else str(value)
