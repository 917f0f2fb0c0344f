"""Who goes into the next batch: the earliest deadline first, and no session at another's expense. No threads, no event loop.

Every session has a clock of its own. A frame is due one frame's time after it came, or after the session's frame before it was
due, whichever is later; one that comes as soon as the frame before it is answered has been waiting elsewhere, and counts from
when that one was due, so that a session that has fallen behind is known to be late. A session in real time is thus always due
soon; one that sends faster runs ahead of its clock and is served from what the others leave, yet never later than it has run
ahead, at most :data:`MOST_AHEAD_S`.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import weakref
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from server.step_cost import StepCost

FRAME_MS = 80
"""Real time of one frame."""
FRAME_S = FRAME_MS / 1000
MOST_AHEAD_S = 2.0
"""How far a session's clock may run ahead of the time."""
MOST_BEHIND_S = 2.0
"""How far a session's clock may fall behind."""
STILL_WAITING_S = 0.02
"""A frame that comes within this time of the answer before it was waiting for it."""
AHEAD_STEP_S = 0.02
"""Longest step made for sessions that are ahead, while others are in real time: a step cannot be interrupted."""
DUE_WITHIN_S = FRAME_S * 1.01
"""A frame that came just now is due within a frame's time, whatever the rounding; one that is due later is ahead."""
PACED_RECENTLY_S = 1.0
"""A session that sent nothing for this long does not hold others back."""

RESET = "reset"
"""The step that is the session's own, and no frame."""

Array = npt.NDArray[Any]


class Session(Protocol):
    """What the executor needs of an encoder or decoder session."""

    @property
    def levels(self) -> int:
        """RVQ levels."""

    def reset(self) -> None:
        """Start over, as if new."""

    def close(self) -> None:
        """End the session and free its state."""


@dataclass(eq=False)
class Job:
    """One frame of one session, or its reset, with whoever waits for it."""

    step: str
    session: Session
    row: Array
    future: asyncio.Future[Array]
    submitted_s: float
    arrived_s: float = math.inf
    """When it came, as far as its session's clock tells; not after ``submitted_s``."""
    deadline_s: float = math.inf
    serial: int = field(default_factory=itertools.count().__next__)

    @property
    def batch_key(self) -> tuple[str, int]:
        """What sessions of one batch have in common."""
        return self.step, self.session.levels

    def is_due(self, now_s: float) -> bool:
        """Whether it is due within a frame's time; otherwise its session is ahead."""
        return self.deadline_s - now_s <= DUE_WITHIN_S


@dataclass
class _Clock:
    due_s: float = -math.inf
    heard_s: float = -math.inf
    answered_s: float = -math.inf


class BatchSchedule:
    """The frames that wait.

    Args:
        cost: what steps cost.
        max_batch: sessions in one batch, 1 or more.
        gather_s: how long a frame may be held back, while a worker is idle, for others to join it; 0 starts at once.

    """

    def __init__(self, cost: StepCost, *, max_batch: int, gather_s: float = 0.0) -> None:
        self._cost = cost
        self._max_batch = max_batch
        self._gather_s = gather_s
        self._jobs: list[Job] = []
        self._clocks: weakref.WeakKeyDictionary[Session, _Clock] = weakref.WeakKeyDictionary()

    @property
    def waiting_frames(self) -> int:
        """Frames that no worker has taken yet and somebody still waits for."""
        return sum(job.step != RESET and not job.future.cancelled() for job in self._jobs)

    @property
    def known_sessions(self) -> int:
        """Sessions that sent something, are still held by somebody, and were not forgotten."""
        return len(self._clocks)

    def add(self, job: Job) -> None:
        """Give a job its deadline, and let it wait."""
        now_s = job.submitted_s
        clock = self._clocks.setdefault(job.session, _Clock())
        waited = now_s - clock.answered_s <= STILL_WAITING_S
        due_s = max(clock.due_s, now_s - MOST_BEHIND_S if waited else now_s)
        job.arrived_s = min(due_s, now_s)
        if job.step != RESET:
            due_s = min(due_s + FRAME_S, now_s + MOST_AHEAD_S + FRAME_S)
        clock.due_s, clock.heard_s = due_s, now_s
        job.deadline_s = due_s
        self._jobs.append(job)

    def answered(self, session: Session, now_s: float) -> None:
        """Note when a session got its last answer."""
        if (clock := self._clocks.get(session)) is not None:
            clock.answered_s = now_s

    def forget(self, session: Session) -> None:
        """Drop the clock of a session that has ended."""
        self._clocks.pop(session, None)

    def take(self, busy: Container[int], now_s: float) -> list[Job]:
        """Take the next batch: the job that is due first among sessions that are not ``busy``, and who can go with it.

        Returns:
            the jobs, of one batch key and distinct sessions; none if nobody may start now.

        """
        self._jobs = [job for job in self._jobs if not job.future.cancelled()]
        ready = self._ready(busy)
        if not ready:
            return []
        mates = [job for job in ready if job.batch_key == ready[0].batch_key]
        if self._start_s(mates) > now_s:
            return []
        batch = self._joined(mates, now_s)
        taken = {job.serial for job in batch}
        self._jobs = [job for job in self._jobs if job.serial not in taken]
        return batch

    def wait_s(self, busy: Container[int], now_s: float) -> float | None:
        """Return the seconds until :meth:`take` may give what it now holds back; ``None`` if it holds nothing back."""
        ready = self._ready(busy)
        if not ready:
            return None
        return max(self._start_s([job for job in ready if job.batch_key == ready[0].batch_key]) - now_s, 0.0)

    def drain(self) -> list[Job]:
        """Take everything that waits."""
        jobs, self._jobs = self._jobs, []
        return jobs

    def _ready(self, busy: Container[int]) -> list[Job]:
        """Return the first job of every session that is not busy, in the order in which they are due."""
        first: dict[int, Job] = {}
        for job in self._jobs:
            if not job.future.cancelled():
                first.setdefault(id(job.session), job)
        jobs = [job for job in first.values() if id(job.session) not in busy]
        return sorted(jobs, key=lambda job: (job.deadline_s, job.serial))

    def _start_s(self, mates: list[Job]) -> float:
        """Return when a batch of these may start: when the first has waited long enough, or at once if nobody else can come."""
        everyone = len(mates) >= min(self._max_batch, len(self._clocks))
        if self._gather_s <= 0 or everyone or mates[0].step == RESET:
            return -math.inf
        return min(job.submitted_s for job in mates) + self._gather_s

    def _joined(self, mates: list[Job], now_s: float) -> list[Job]:
        """Let those that are due go together; one that is ahead joins only where that makes nobody late."""
        first = mates[0]
        limit_s = math.inf
        if self._somebody_is_paced(now_s):
            limit_s = min(AHEAD_STEP_S, first.deadline_s - now_s) if first.is_due(now_s) else AHEAD_STEP_S
        batch = [first]
        for job in mates[1:]:
            if len(batch) >= self._max_batch:
                break
            if job.is_due(now_s) or self._cost.predict_s(first.step, len(batch) + 1) <= limit_s:
                batch.append(job)
        return batch

    def _somebody_is_paced(self, now_s: float) -> bool:
        return any(
            clock.due_s - now_s <= DUE_WITHIN_S and now_s - clock.heard_s <= PACED_RECENTLY_S for clock in self._clocks.values()
        )


def empty_row() -> Array:
    """Return the row of a job that has none."""
    return np.empty(0, np.float32)
