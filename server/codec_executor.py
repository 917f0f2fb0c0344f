"""Runs the engine off the event loop, many sessions in one pass.

Whoever is ready when a worker becomes free, of the same direction and levels, goes in one batch, the earliest deadline first
(:mod:`server.batch_schedule`). A frame waits only while every worker is busy, or for the gather window where one is set.
Nothing polls; with no frame due, nothing runs. Every exception reaches the waiter of the session that caused it, no other.
"""

from __future__ import annotations

import asyncio
import functools
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from server.batch_runner import Engine, Outcome, run_batch
from server.batch_schedule import FRAME_MS, RESET, Array, BatchSchedule, Job, Session, empty_row
from server.errors import DrainingError
from server.step_cost import StepCost

__all__ = ["FRAME_MS", "CodecExecutor", "Engine", "ExecutorStats", "Session", "StepObserver"]

ENCODE, DECODE, LANGUAGE = "encode_batch", "decode_batch", "language_batch"
SETTLING_TURNS = 4
"""Turns of the loop after a batch, in which those it answered hand in the frames they have: microseconds of waiting that
keep a service at its limit from splitting into two halves, each of which pays for the weights."""


@dataclass
class ExecutorStats:
    """Counters since the start."""

    frames: int = 0
    late_frames: int = 0
    batches: int = 0
    largest_batch: int = 0
    refused_frames: int = 0
    busy_s: float = 0.0


class StepObserver(Protocol):
    """Who is told of every step; called on the event loop, so it must be quick."""

    def step_done(self, step: str, sessions: int, busy_s: float) -> None:
        """Take note of a batch that has ended."""

    def frame_done(self, step: str, latency_s: float, lateness_s: float, *, refused: bool) -> None:
        """Take note of a frame that has its answer, ``lateness_s`` after it was due (negative: before)."""


class CodecExecutor:
    """Batches the frames of many sessions onto a few worker threads. Used from one event loop.

    Args:
        engine: the model.
        cost: what steps cost; kept true here, one line a direction.
        workers: batches that may run at the same time, 1 or more.
        max_batch: sessions in one batch, 1 or more.
        gather_ms: how long a frame may be held back for others to join it, while a worker is idle.
        observers: who is told of every step.

    """

    def __init__(
        self,
        engine: Engine,
        cost: StepCost | None = None,
        *,
        workers: int = 1,
        max_batch: int = 64,
        gather_ms: float = 0.0,
        observers: tuple[StepObserver, ...] = (),
    ) -> None:
        self._engine = engine
        self.workers = workers
        self.max_batch = max_batch
        self.cost = StepCost() if cost is None else cost
        self._observers = observers
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="codec")
        self._schedule = BatchSchedule(self.cost, max_batch=max_batch, gather_s=gather_ms / 1000)
        self._in_step: dict[int, Session] = {}
        self._retired: set[int] = set()
        self._running: dict[int, float] = {}
        self._start_scheduled = False
        self._gathering: asyncio.TimerHandle | None = None
        self._closed = False
        self._loop_cpu_s = time.thread_time()
        self.stats = ExecutorStats()

    @property
    def waiting_frames(self) -> int:
        """Frames that no worker has taken yet."""
        return self._schedule.waiting_frames

    @property
    def known_sessions(self) -> int:
        """Sessions that were given to a step and not retired since: none of them may be left when nobody is served."""
        return self._schedule.known_sessions

    @property
    def longest_step_s(self) -> float:
        """Seconds that the oldest of the running steps has taken so far; 0 when none runs."""
        return time.monotonic() - min(self._running.values()) if self._running else 0.0

    async def encode(self, session: Session, pcm: Array) -> Array:
        """Encode one frame, float32 [frame_samples], to int32 [levels]. Frames of one session run in the order submitted.

        Raises:
            CodecError: as the session's own ``encode``; its state is then as before. Cancelling drops a frame that still waits.

        """
        return await self._submit(ENCODE, session, pcm)

    async def decode(self, session: Session, codes: Array) -> Array:
        """Decode one frame, int [levels], to float32 [frame_samples]; otherwise as :meth:`encode`."""
        return await self._submit(DECODE, session, codes)

    async def converse(self, session: Session, codes: Array) -> Array:
        """Step a language model by one frame, int32 [user levels], to int32 [1 + own levels]; otherwise as :meth:`encode`."""
        return await self._submit(LANGUAGE, session, codes)

    async def reset(self, session: Session) -> None:
        """Start a session over on a worker, since clearing its state takes long enough to hold up the event loop."""
        await self._submit(RESET, session, empty_row())

    def retire(self, session: Session) -> None:
        """Close a session: now, or as soon as the step it is in has ended."""
        self._schedule.forget(session)
        if id(session) in self._in_step:
            self._retired.add(id(session))
        else:
            session.close()

    def close(self) -> None:
        """Wait for the running batches and end the workers; whoever still waits, or comes later, is refused."""
        self._closed = True
        for job in self._schedule.drain():
            if not job.future.done():
                job.future.set_exception(_closed_error())
        self._threads.shutdown(wait=True)

    def _submit(self, step: str, session: Session, row: Array) -> asyncio.Future[Array]:
        if self._closed:
            raise _closed_error()
        future: asyncio.Future[Array] = asyncio.get_running_loop().create_future()
        self._schedule.add(Job(step, session, row, future, time.monotonic()))
        self._schedule_start()
        return future

    def _schedule_start(self, turns: int = 1) -> None:
        """Start batches some turns of the loop later, so that all who become ready until then go together."""
        if not self._start_scheduled:
            self._start_scheduled = True
            self._start_batches_in(turns)

    def _start_batches_in(self, turns: int) -> None:
        if turns:
            asyncio.get_running_loop().call_soon(self._start_batches_in, turns - 1)
            return
        self._start_scheduled = False
        while len(self._running) < self.workers and (batch := self._schedule.take(self._in_step, time.monotonic())):
            self._start(batch)
        if len(self._running) < self.workers and not self._closed:
            self._come_back(self._schedule.wait_s(self._in_step, time.monotonic()))

    def _start(self, batch: list[Job]) -> None:
        self._in_step.update((id(job.session), job.session) for job in batch)
        self._running[batch[0].serial] = time.monotonic()
        running = asyncio.get_running_loop().run_in_executor(self._threads, run_batch, self._engine, batch)
        running.add_done_callback(functools.partial(self._finish_batch, batch))

    def _come_back(self, wait_s: float | None) -> None:
        """Look again when the gather window ends."""
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None
        if wait_s is not None:
            self._gathering = asyncio.get_running_loop().call_later(wait_s, self._schedule_start)

    def _finish_batch(self, batch: list[Job], running: asyncio.Future[Outcome]) -> None:
        outcome = running.result()
        del self._running[batch[0].serial]
        now_s = time.monotonic()
        self._count_batch(batch, outcome)
        for job, result in zip(batch, outcome.results, strict=True):
            del self._in_step[id(job.session)]
            if id(job.session) in self._retired:
                self._retired.discard(id(job.session))
                job.session.close()
            self._schedule.answered(job.session, now_s)
            self._answer(job, result, now_s)
        if not self._closed:
            self._schedule_start(SETTLING_TURNS)

    def _count_batch(self, batch: list[Job], outcome: Outcome) -> None:
        self.stats.busy_s += outcome.busy_s
        if batch[0].step == RESET:
            return
        self.stats.batches += 1
        self.stats.largest_batch = max(self.stats.largest_batch, len(batch))
        loop_cpu_s = time.thread_time()
        self.cost.record_handling(len(batch), loop_cpu_s - self._loop_cpu_s)
        self._loop_cpu_s = loop_cpu_s
        if not outcome.refused_steps:
            self.cost.record(batch[0].step, len(batch), outcome.busy_s)
        for observer in self._observers:
            observer.step_done(batch[0].step, len(batch), outcome.busy_s)

    def _answer(self, job: Job, result: Array | Exception, now_s: float) -> None:
        if job.step != RESET:
            self._count_frame(job, refused=isinstance(result, Exception), now_s=now_s)
        if job.future.done():
            return
        if isinstance(result, Exception):
            job.future.set_exception(result)
        else:
            job.future.set_result(result)

    def _count_frame(self, job: Job, *, refused: bool, now_s: float) -> None:
        lateness_s = now_s - job.deadline_s
        if refused:
            self.stats.refused_frames += 1
        else:
            self.stats.frames += 1
            self.stats.late_frames += lateness_s > 0
        for observer in self._observers:
            observer.frame_done(job.step, now_s - job.arrived_s, lateness_s, refused=refused)


def _closed_error() -> DrainingError:
    return DrainingError("engine", "one that has ended", "one that takes new work", retry_after_ms=1_000)
