"""Whether another stream would make those that are here late: admission by what steps were measured to cost.

With every stream's frame ready at once, a step of all of them takes ``T``; with frames that come spread over time, one step
follows another, each as long as ``D``, which solves ``D = fixed + each * streams * D / frame``. ``each`` is what a stream adds
to a step and what the event loop does for its frame, since nobody's next frame is in before his last is answered. An unlucky
frame waits for half a step that had begun, and then for its own: ``T + D / 2``, and the :data:`RESERVE` on top, are predicted
for the slowest frames. A stream is let in while that is within the time that a frame may take, and while frames have in fact
been in time.
"""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from server.batch_schedule import FRAME_S
from server.codec_executor import DECODE, ENCODE, LANGUAGE
from server.errors import NotOfferedError, OverloadedError
from server.step_cost import StepCost

RESERVE = 0.15
"""Share of a frame's time that is left for what no measurement foresees: whoever else the machine serves."""
LATENESS_WINDOW_S = 2.0
LATE_SHARE = 0.05
"""More late frames than this, of all in the window, and nobody new is let in."""
LEAST_LATE_FRAMES = 5
"""One hiccup of the machine is no overload."""

Demand = tuple[tuple[str, int], ...]
"""What a stream asks of every frame's time: steps, each with its levels."""


def demand_of(mode: str, levels: int, own_levels: int = 0) -> Demand:
    """Return the demand of a stream of this mode: ``encode``, ``decode``, or ``echo``, which is both.

    ``talk`` is an encoding stream, the steps of a language model and, where that has ``own_levels``, a decoding stream.
    """
    if mode == "talk":
        steps = ((ENCODE, levels), (LANGUAGE, own_levels))
        return (*steps, (DECODE, own_levels)) if own_levels else steps
    return tuple((step, levels) for step, without in ((ENCODE, "decode"), (DECODE, "encode")) if mode != without)


@dataclass(frozen=True)
class Load:
    """What the admitted streams come to."""

    predicted_latency_s: float
    """How long the slowest frames are expected to take; 0 without streams, infinite beyond what the machine can do."""
    headroom: float
    """1 - predicted / allowed: 1 at rest, 0 at the limit, below it overloaded."""


class Admission:
    """Knows what is admitted, and predicts. Used from one event loop.

    Args:
        policy: ``measured`` refuses by prediction; ``count`` leaves it to the numbers of places.
        cost: what steps cost; where it was not calibrated, nothing is refused.
        workers: steps that may run at the same time.
        most_latency_ms: how long a frame may take.
        retry_after_ms: what a refused client is told to wait.
        clock_s: seconds, never going back.

    """

    def __init__(
        self,
        policy: Literal["measured", "count"],
        cost: StepCost,
        *,
        workers: int = 1,
        most_latency_ms: int = 80,
        retry_after_ms: int = 2_000,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._policy = policy
        self._cost = cost
        self._workers = workers
        self._most_latency_s = most_latency_ms / 1000
        self._retry_after_ms = retry_after_ms
        self._clock_s = clock_s
        self._streams: Counter[tuple[str, int]] = Counter()
        self._frames: deque[tuple[float, bool]] = deque()
        self._late = 0

    def admit(self, demand: Demand, *, unasked: bool = False) -> None:
        """Let a stream in; give its demand back with :meth:`release`.

        Args:
            demand: its steps.
            unasked: count it without asking whether there is room.

        Raises:
            OverloadedError: it would make frames late. The first one is always let in, however slow the machine.
            NotOfferedError: it has steps of a language model, and would not be in time even by itself.

        """
        if self._policy == "measured" and not unasked:
            self._require_real_time(demand)
            if self._streams.total():
                self._check(demand)
        self._streams.update(demand)

    def release(self, demand: Demand) -> None:
        """Give back what :meth:`admit` took."""
        self._streams.subtract(demand)
        self._streams = +self._streams

    def load(self, more: Demand = ()) -> Load:
        """Predict for the admitted streams and one ``more``."""
        predicted_s = self._predict_s(self._streams + Counter(more))
        return Load(predicted_s, 1 - predicted_s / self._most_latency_s)

    def most_streams(self, demand: Demand, limit: int) -> int:
        """Count the streams of this demand, up to ``limit``, that this machine can hold if there are no others."""
        streams: Counter[tuple[str, int]] = Counter()
        for count in range(limit):
            streams.update(demand)
            if self._predict_s(streams) > self._most_latency_s:
                return count
        return limit

    def refusal(self, demand: Demand) -> str | None:
        """Say why a stream of this demand would be refused now; ``None`` if it would not."""
        if self._policy == "count" or not self._streams.total():
            return None
        try:
            self._check(demand)
        except OverloadedError as error:
            return str(error)
        return None

    def step_done(self, step: str, sessions: int, busy_s: float) -> None:
        """Nothing to do: the executor keeps the cost itself."""

    def frame_done(self, step: str, latency_s: float, lateness_s: float, *, refused: bool) -> None:  # noqa: ARG002 - an observer
        """Count a frame, and forget those that are long past."""
        self._frames.append((self._clock_s(), lateness_s > 0))
        self._late += lateness_s > 0
        self._forget()

    @property
    def late_share(self) -> float:
        """Late frames among those of the last moments."""
        self._forget()
        return self._late / len(self._frames) if self._late >= LEAST_LATE_FRAMES else 0.0

    def _require_real_time(self, demand: Demand) -> None:
        """Refuse to talk where the machine cannot: a conversation that falls further behind is none."""
        frame_s = sum(self._cost.predict_s(step, 1) for step, _ in demand)
        most_s = min(FRAME_S, self._most_latency_s)
        if frame_s > most_s and any(step == LANGUAGE for step, _ in demand):
            found = f"'talk', of which a frame takes {frame_s * 1000:.0f} ms here"
            expected = f"at most {most_s * 1000:.0f} ms; `mimi talk` answers a recording, however long it takes"
            raise NotOfferedError("mode", found, expected)

    def _check(self, demand: Demand) -> None:
        if self.late_share > LATE_SHARE:
            found, expected = f"{self.late_share:.0%} of them late", f"at most {LATE_SHARE:.0%}, over {LATENESS_WINDOW_S:.0f} s"
            raise OverloadedError("frames", found, expected, retry_after_ms=self._retry_after_ms)
        predicted_s = self.load(demand).predicted_latency_s
        if predicted_s > self._most_latency_s:
            found = "no end" if math.isinf(predicted_s) else f"{predicted_s * 1000:.0f} ms"
            expected = f"at most {self._most_latency_s * 1000:.0f} ms"
            subject = "time of a frame, with one stream more"
            raise OverloadedError(subject, found, expected, retry_after_ms=self._retry_after_ms)

    def _predict_s(self, streams: Counter[tuple[str, int]]) -> float:
        fixed_s = each_s = 0.0
        for (step, _), count in streams.items():
            step_fixed_s, step_each_s = self._cost.parts_s(step)
            fixed_s += step_fixed_s
            each_s += step_each_s * count / self._workers
            if self._cost.known(step):
                each_s += self._cost.handling_s * count
        if each_s >= FRAME_S:
            return math.inf
        return (fixed_s + each_s + fixed_s / (1 - each_s / FRAME_S) / 2) / (1 - RESERVE)

    def _forget(self) -> None:
        long_ago_s = self._clock_s() - LATENESS_WINDOW_S
        while self._frames and self._frames[0][0] < long_ago_s:
            self._late -= self._frames.popleft()[1]
