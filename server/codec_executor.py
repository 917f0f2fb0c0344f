"""Runs the engine off the event loop, many sessions in one pass.

A frame waits only while every worker is busy: whoever is ready when a worker becomes free, of the same direction and levels,
goes in one batch; no wait is added to make batches larger. Nothing polls; with no frame due, nothing runs. Every exception
reaches the waiter of the session that caused it, and nobody else.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

FRAME_MS = 80
"""Real time of one frame; an answer that takes longer is late."""

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


class Engine(Protocol):
    """What the executor needs of a model. Row i of a batch belongs to session i; the rows of a refused batch leave no trace."""

    def encode_batch(self, sessions: Sequence[Any], pcm: Array) -> Array:
        """Encode float32 [B, frame_samples] to int32 [B, levels]."""

    def decode_batch(self, sessions: Sequence[Any], codes: Array) -> Array:
        """Decode int [B, levels] to float32 [B, frame_samples]."""


@dataclass
class ExecutorStats:
    """Counters since the start."""

    frames: int = 0
    late_frames: int = 0
    batches: int = 0
    largest_batch: int = 0
    refused_frames: int = 0
    busy_s: float = 0.0


@dataclass(eq=False)
class _Job:
    step: str
    session: Session
    row: Array
    future: asyncio.Future[Array]
    submitted_s: float = field(default_factory=time.monotonic)

    @property
    def batch_key(self) -> tuple[str, int]:
        return self.step, self.session.levels


class CodecExecutor:
    """Batches the frames of many sessions onto a few worker threads. Used from one event loop.

    Args:
        engine: the model.
        workers: batches that may run at the same time, 1 or more.
        max_batch: sessions in one batch, 1 or more.

    """

    def __init__(self, engine: Engine, *, workers: int = 1, max_batch: int = 64) -> None:
        self._engine = engine
        self._workers = workers
        self._max_batch = max_batch
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="codec")
        self._waiting: deque[_Job] = deque()
        self._in_step: dict[int, Session] = {}
        self._retired: set[int] = set()
        self._batches_running = 0
        self._start_scheduled = False
        self.stats = ExecutorStats()

    @property
    def waiting_frames(self) -> int:
        """Frames that no worker has taken yet."""
        return sum(job.step != RESET for job in self._waiting)

    async def encode(self, session: Session, pcm: Array) -> Array:
        """Encode one frame, float32 [frame_samples], to int32 [levels]. Frames of one session run in the order submitted.

        Raises:
            CodecError: as the session's own ``encode``; its state is then as before. Cancelling drops a frame that still waits.

        """
        return await self._submit("encode_batch", session, pcm)

    async def decode(self, session: Session, codes: Array) -> Array:
        """Decode one frame, int [levels], to float32 [frame_samples]; otherwise as :meth:`encode`."""
        return await self._submit("decode_batch", session, codes)

    async def reset(self, session: Session) -> None:
        """Start a session over on a worker, since clearing its state takes long enough to hold up the event loop."""
        await self._submit(RESET, session, np.empty(0, np.float32))

    def retire(self, session: Session) -> None:
        """Close a session: now, or as soon as the step it is in has ended."""
        if id(session) in self._in_step:
            self._retired.add(id(session))
        else:
            session.close()

    def close(self) -> None:
        """Wait for the running batches and end the workers. Nothing may be submitted afterwards."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _submit(self, step: str, session: Session, row: Array) -> asyncio.Future[Array]:
        future: asyncio.Future[Array] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Job(step, session, row, future))
        self._schedule_start()
        return future

    def _schedule_start(self) -> None:
        """Start batches at the end of the loop's turn, so that all who become ready in one turn go together."""
        if not self._start_scheduled:
            self._start_scheduled = True
            asyncio.get_running_loop().call_soon(self._start_batches)

    def _start_batches(self) -> None:
        self._start_scheduled = False
        loop = asyncio.get_running_loop()
        while self._batches_running < self._workers and (batch := self._take_batch()):
            self._batches_running += 1
            self._in_step.update((id(job.session), job.session) for job in batch)
            running = loop.run_in_executor(self._threads, _run_batch, self._engine, batch)
            running.add_done_callback(functools.partial(self._finish_batch, batch))

    def _take_batch(self) -> list[_Job]:
        """Take the oldest waiting job whose session is free, and all that can go with it; leave the rest in order."""
        batch: list[_Job] = []
        busy = set(self._in_step)
        left: deque[_Job] = deque()
        for job in self._waiting:
            if job.future.cancelled():
                continue
            fits = not batch or (job.batch_key == batch[0].batch_key and len(batch) < self._max_batch)
            if fits and id(job.session) not in busy:
                batch.append(job)
            else:
                left.append(job)
            busy.add(id(job.session))
        self._waiting = left
        return batch

    def _finish_batch(self, batch: list[_Job], running: asyncio.Future[_Outcome]) -> None:
        outcome = running.result()
        self._batches_running -= 1
        now_s = time.monotonic()
        self.stats.busy_s += outcome.busy_s
        if batch[0].step != RESET:
            self.stats.batches += 1
            self.stats.largest_batch = max(self.stats.largest_batch, len(batch))
        for job, result in zip(batch, outcome.results, strict=True):
            del self._in_step[id(job.session)]
            if id(job.session) in self._retired:
                self._retired.discard(id(job.session))
                job.session.close()
            self._answer(job, result, now_s)
        self._schedule_start()

    def _answer(self, job: _Job, result: Array | Exception, now_s: float) -> None:
        if job.step != RESET:
            self._count(job, refused=isinstance(result, Exception), now_s=now_s)
        if job.future.done():
            return
        if isinstance(result, Exception):
            job.future.set_exception(result)
        else:
            job.future.set_result(result)

    def _count(self, job: _Job, *, refused: bool, now_s: float) -> None:
        if refused:
            self.stats.refused_frames += 1
        else:
            self.stats.frames += 1
            self.stats.late_frames += (now_s - job.submitted_s) * 1000 > FRAME_MS


@dataclass(frozen=True)
class _Outcome:
    results: list[Array | Exception]
    busy_s: float


def _run_batch(engine: Engine, batch: list[_Job]) -> _Outcome:
    """Run on a worker thread. A refused batch is run again one by one, so that only the guilty session hears of it."""
    started_s = time.monotonic()
    results = _step(engine, batch)
    if len(batch) > 1 and isinstance(results[0], Exception):
        results = [_step(engine, [job])[0] for job in batch]
    return _Outcome(results, time.monotonic() - started_s)


def _step(engine: Engine, batch: list[_Job]) -> list[Array | Exception]:
    try:
        if batch[0].step == RESET:
            for job in batch:
                job.session.reset()
            return [job.row for job in batch]
        step = getattr(engine, batch[0].step)
        return list(step([job.session for job in batch], np.stack([job.row for job in batch])))
    except Exception as error:
        return [error] * len(batch)
