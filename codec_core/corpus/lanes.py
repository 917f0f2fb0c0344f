"""Many sources at once as independent lanes of the batched step.

A lane's session begins as new, sees the source's own frames and nothing else, and is reset for the next one. A lane that has
no frame is left out of the step; nothing is ever put in its place.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from codec_core.corpus.feed import SourceFacts
from codec_core.corpus.inputs import Source
from codec_core.corpus.schedule import Job, Schedule
from codec_core.errors import CodecError, InternalError
from codec_core.model import CodecModel
from codec_core.pcm import Float32Array
from codec_core.session import EncoderSession

_WAIT_S: Final = 0.2
_NO_FRAMES: Final = np.empty((0, 0), np.float32)


def code_dtype(codebook_entries: int) -> np.dtype[np.integer[Any]]:
    """Return the element type codes are kept in: int16, or uint16 where a code may not fit."""
    return np.dtype("<i2" if codebook_entries <= 1 << 15 else "<u2")


@dataclass(frozen=True)
class Outcome:
    """What became of a source: its codes and facts, or an error."""

    index: int
    source: Source
    codes: bytes = b""
    """[frames, levels] of :func:`code_dtype`."""
    facts: SourceFacts | None = None
    error: CodecError | None = None


class Lane:
    """A session's place in the batch, and the source that runs through it."""

    def __init__(self, session: EncoderSession) -> None:
        self.session = session
        self._job: Job | None = None
        self._frames: Float32Array = _NO_FRAMES
        self._at = 0
        self._codes = bytearray()

    @property
    def job(self) -> Job:
        """The source under way."""
        if self._job is None:
            raise InternalError("lane", "no source in it")
        return self._job

    def start(self, job: Job) -> None:
        """Begin a source, with a session as new."""
        self.session.reset()
        self._job = job
        self._frames, self._at = _NO_FRAMES, 0
        self._codes = bytearray()

    def poll(self) -> bool | None:
        """Tell whether a frame is ready: True, or False if it is still being read; None at the source's end.

        Raises:
            CodecError: the source cannot be read on.

        """
        feed = self.job.feed
        while self._at == len(self._frames):
            if not feed.pending.done():
                return False
            block = feed.take()
            if block is None:
                return None
            self._frames, self._at = block, 0
        return True

    @property
    def frame(self) -> Float32Array:
        """The frame that is ready, ``[frame_samples]``."""
        frame: Float32Array = self._frames[self._at]
        return frame

    def advance(self, codes: npt.NDArray[np.integer]) -> None:
        """Keep the codes of the frame that was ready, and go past it."""
        self._codes += codes.tobytes()
        self._at += 1

    def finish(self, error: CodecError | None) -> Outcome:
        """End the source and say what became of it."""
        job, self._job = self.job, None
        if error is not None:
            return Outcome(job.index, job.source, error=error)
        return Outcome(job.index, job.source, bytes(self._codes), job.feed.facts)


class LaneWorker:
    """One thread's batch: keeps its lanes filled and steps those that have a frame, until nothing is left."""

    def __init__(
        self,
        model: CodecModel,
        levels: int,
        lanes: int,
        schedule: Schedule,
        *,
        deliver: Callable[[Outcome], None],
        stepped: Callable[[int], None],
        stop: threading.Event,
    ) -> None:
        """Say where work comes from and goes to.

        Args:
            model: shared with the other workers.
            levels: RVQ levels.
            lanes: most sources at once.
            schedule: where sources come from.
            deliver: takes each outcome; may block.
            stepped: told the number of frames after each step.
            stop: ends the work after the present step.

        """
        self._model = model
        self._levels = levels
        self._dtype = code_dtype(model.info.codebook_entries)
        self._most_lanes = lanes
        self._schedule = schedule
        self._deliver = deliver
        self._stepped = stepped
        self._stop = stop
        self._busy: list[Lane] = []
        self._idle: list[Lane] = []

    def run(self) -> None:
        """Work until the schedule has nothing left."""
        while not self._stop.is_set():
            self._fill()
            if not self._busy:
                return
            ready = [lane for lane in list(self._busy) if self._is_ready(lane)]
            if ready:
                self._step(ready)
            elif self._busy:
                wait([lane.job.feed.pending for lane in self._busy], timeout=_WAIT_S, return_when=FIRST_COMPLETED)

    def _fill(self) -> None:
        while len(self._busy) < self._most_lanes:
            job = self._schedule.take(len(self._busy))
            if job is None:
                return
            lane = self._idle.pop() if self._idle else Lane(self._model.encoder(self._levels))
            lane.start(job)
            self._busy.append(lane)

    def _is_ready(self, lane: Lane) -> bool:
        try:
            state = lane.poll()
        except CodecError as error:
            self._finish(lane, error)
            return False
        if state is None:
            self._finish(lane, None)
        return bool(state)

    def _step(self, lanes: list[Lane]) -> None:
        try:
            rows = self._model.encode_batch([lane.session for lane in lanes], np.stack([lane.frame for lane in lanes]))
        except CodecError:
            self._step_one_by_one(lanes)
        else:
            for lane, codes in zip(lanes, rows.astype(self._dtype), strict=True):
                lane.advance(codes)
        self._stepped(len(lanes))

    def _step_one_by_one(self, lanes: list[Lane]) -> None:
        """After a step that was refused, and so never happened: find the lanes it was refused for. The bits are the same."""
        for lane in lanes:
            try:
                lane.advance(lane.session.encode(lane.frame).astype(self._dtype))
            except CodecError as error:
                self._finish(lane, error)

    def _finish(self, lane: Lane, error: CodecError | None) -> None:
        self._busy.remove(lane)
        self._idle.append(lane)
        self._schedule.done()
        self._deliver(lane.finish(error))
