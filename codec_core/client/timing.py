"""Time on the line: when input is due, how long an answer takes, when to try again. Clocks are the caller's."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from typing import Final

import numpy as np

RECENT_FRAMES: Final = 2_048
"""Answers that latency is told of."""


class Pacer:
    """Holds input back to real time, as a microphone would: a chunk is due when its last sample would have been heard.

    Args:
        units_per_s: rate of what positions count.

    """

    def __init__(self, units_per_s: float) -> None:
        self._units_per_s = units_per_s
        self._epoch = -1
        self._start_s = 0.0

    def delay_s(self, epoch: int, end_units: float, now_s: float) -> float:
        """Return how long to wait before a chunk is sent that ends at this position; 0 where it is due."""
        if epoch > self._epoch:
            self._epoch, self._start_s = epoch, now_s
        if epoch < self._epoch:
            return 0.0
        return max(0.0, self._start_s + end_units / self._units_per_s - now_s)


class LatencyMeter:
    """Time from sending the last input of a frame until its answer, and how much input is not answered yet.

    Args:
        units_per_frame: input that makes a frame; with resampled audio not a whole number.

    """

    def __init__(self, units_per_frame: float) -> None:
        self._units_per_frame = units_per_frame
        self._recent_ms: deque[float] = deque(maxlen=RECENT_FRAMES)
        self._padding_frames = 0.0
        self._sent: deque[tuple[float, float]] = deque()
        self.sent_frames = 0.0
        """Input sent since the start or the last reset, in frames; padding of a flush included."""
        self.answered_frames = 0

    def restart(self, units: int = 0) -> None:
        """Go on from a position: after a reset from 0, after a resume from what the service holds."""
        if units == 0:
            self._padding_frames = 0.0
        self._sent.clear()
        self.sent_frames = units / self._units_per_frame + self._padding_frames
        self.answered_frames = min(self.answered_frames, int(self.sent_frames)) if units else 0

    def sent(self, units: float, now_s: float) -> None:
        """Count input as sent."""
        self.sent_frames += units / self._units_per_frame
        self._sent.append((self.sent_frames, now_s))

    def flush_sent(self, now_s: float) -> None:
        """Count the padding that a flush makes up to a whole frame."""
        # A resampler's arithmetic must not make a whole frame look like one and a bit.
        whole = float(np.ceil(self.sent_frames - 1e-6))
        self._padding_frames += max(0.0, whole - self.sent_frames)
        self.sent_frames = max(whole, self.sent_frames)
        self._sent.append((self.sent_frames, now_s))

    def answered(self, frame: int, now_s: float) -> float | None:
        """Take the answer of a frame, by its index; return its latency in ms, or ``None`` where its input was sent earlier."""
        self.answered_frames = max(self.answered_frames, frame + 1)
        while self._sent and self._sent[0][0] < frame + 1 - 1e-6:
            self._sent.popleft()
        if not self._sent:
            return None
        latency_ms = (now_s - self._sent[0][1]) * 1000
        self._recent_ms.append(latency_ms)
        return latency_ms

    @property
    def lag_frames(self) -> int:
        """Whole frames that were sent and are not answered."""
        return max(0, int(self.sent_frames + 1e-6) - self.answered_frames)

    def percentile_ms(self, percent: float) -> float | None:
        """Return a percentile of the recent latencies; ``None`` before the first."""
        return float(np.percentile(self._recent_ms, percent)) if self._recent_ms else None


def delays_s(first_s: float, longest_s: float, rng: random.Random) -> Iterator[float]:
    """Yield the waits between tries: evenly at random from zero up to a bound that doubles, so that clients spread out."""
    bound_s = first_s
    while True:
        yield rng.uniform(0, bound_s)
        bound_s = min(longest_s, 2 * bound_s)
