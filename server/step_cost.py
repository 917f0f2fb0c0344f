"""What a batched step costs on this machine: measured at start-up, kept true by every step since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SMOOTHING = 0.05
"""Weight of the newest step; some twenty steps make an estimate."""
MOST_DRIFT = 20.0
"""A machine this many times slower or faster than at start-up is not believed."""
HANDLING_S = 0.0006
"""Of a frame on its way in and out, until it is measured."""
HANDLING_STEP = 0.01
"""How far one batch moves the estimate of it."""


@dataclass
class _Line:
    """Seconds of a step of ``n`` sessions: ``drift * (fixed_s + each_s * n)``."""

    fixed_s: float
    each_s: float
    drift: float = 1.0


class StepCost:
    """Seconds of a step by its direction and size: a line through what :meth:`calibrate` was given, scaled by what came later.

    The weights are read once for a batch, which is the line's start; every session adds its own arithmetic, which is its slope.
    """

    def __init__(self) -> None:
        self._lines: dict[str, _Line] = {}
        self.handling_s = HANDLING_S
        """Processor time that the event loop takes for a frame: reading, checking, answering."""

    def calibrate(self, step: str, measured: Sequence[tuple[int, float]]) -> None:
        """Lay the line of one direction.

        Args:
            step: the engine's call.
            measured: sessions in a step and its seconds; two sizes or more make a slope.

        """
        sizes, seconds = [float(size) for size, _ in measured], [cost for _, cost in measured]
        mean_size, mean_s = sum(sizes) / len(sizes), sum(seconds) / len(seconds)
        spread = sum((size - mean_size) ** 2 for size in sizes)
        slope = sum((size - mean_size) * cost for size, cost in measured) / spread if spread else 0.0
        # Noise must not make another session free of charge, nor the weights.
        each_s = min(max(slope, 0.05 * mean_s / mean_size), mean_s / mean_size)
        self._lines[step] = _Line(mean_s - each_s * mean_size, each_s)

    def record(self, step: str, sessions: int, seconds: float) -> None:
        """Take account of one more step."""
        line = self._lines.get(step)
        if line is None:
            return
        drift = seconds / (line.fixed_s + line.each_s * sessions)
        line.drift += SMOOTHING * (min(max(drift, 1 / MOST_DRIFT), MOST_DRIFT) - line.drift)

    def record_handling(self, frames: int, seconds: float) -> None:
        """Take account of the processor time that the event loop took for so many frames, 1 or more.

        The median is followed, because the loop has other work now and then, such as letting streams in.
        """
        self.handling_s *= 1 + HANDLING_STEP if seconds > frames * self.handling_s else 1 - HANDLING_STEP

    def known(self, step: str) -> bool:
        """Whether the direction was calibrated."""
        return step in self._lines

    def parts_s(self, step: str) -> tuple[float, float]:
        """Return the seconds of a step whatever its size, and those of each session in it; zeros if not calibrated."""
        line = self._lines.get(step)
        return (0.0, 0.0) if line is None else (line.drift * line.fixed_s, line.drift * line.each_s)

    def predict_s(self, step: str, sessions: float) -> float:
        """Estimate the seconds of a step; zero if not calibrated."""
        fixed_s, each_s = self.parts_s(step)
        return fixed_s + each_s * sessions
