"""Runs one batch on a worker thread; a refused one is halved until only the guilty hear of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from codec_core.errors import InternalError
from server.batch_schedule import RESET, Array, Job


class Engine(Protocol):
    """What the executor needs of a model. Row i of a batch belongs to session i; the rows of a refused batch leave no trace."""

    def encode_batch(self, sessions: Sequence[Any], pcm: Array) -> Array:
        """Encode float32 [B, frame_samples] to int32 [B, levels]."""

    def decode_batch(self, sessions: Sequence[Any], codes: Array) -> Array:
        """Decode int [B, levels] to float32 [B, frame_samples]."""


@dataclass(frozen=True)
class Outcome:
    """What became of a batch: one result for each job, in order."""

    results: list[Array | Exception]
    busy_s: float
    refused_steps: int
    """Steps that the engine refused, of the halves too."""


def run_batch(engine: Engine, batch: Sequence[Job]) -> Outcome:
    """Run a batch; never raises. A guilty session among n costs some 2 log2(n) more steps, each over a part of the batch."""
    started_s = time.monotonic()
    results: list[Array | Exception] = []
    refused_steps = 0
    waiting = [list(batch)]
    while waiting:
        part = waiting.pop()
        answer = _step(engine, part)
        if isinstance(answer, list):
            results += answer
            continue
        refused_steps += 1
        if len(part) == 1:
            results.append(answer)
        else:
            middle = len(part) // 2
            waiting += [part[middle:], part[:middle]]
    return Outcome(results, time.monotonic() - started_s, refused_steps)


def _step(engine: Engine, batch: list[Job]) -> list[Array | Exception] | Exception:
    try:
        if batch[0].step == RESET:
            for job in batch:
                job.session.reset()
            return [job.row for job in batch]
        step = getattr(engine, batch[0].step)
        rows = list(step([job.session for job in batch], np.stack([job.row for job in batch])))
    except Exception as error:
        return error
    except BaseException as error:
        # Not even what is no error may leave somebody waiting for ever.
        return InternalError("step", found=type(error).__name__, expected="a result")
    if len(rows) != len(batch):
        return InternalError("step", found=f"{len(rows)} rows", expected=f"{len(batch)}, one for each session")
    return rows
