"""Measures what steps cost, before anybody is served."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from codec_core import CodecModel
from server.batch_schedule import FRAME_S
from server.codec_executor import DECODE, ENCODE, CodecExecutor

SIZES: Final = (1, 2, 4, 8, 16)
REPEATS: Final = 3
SEED: Final = 24_000
LONGEST_STEP_S: Final = 2 * FRAME_S
"""No larger batch is measured once a step takes this long: more could not be served anyway."""


async def calibrate(executor: CodecExecutor, model: CodecModel) -> None:
    """Run steps of several sizes and lay the executor's cost lines; takes a second with the full-size model.

    The measuring runs on as many threads as the executor's workers, since they share the machine's memory.
    """
    for step in (ENCODE, DECODE):
        measured: list[tuple[int, float]] = []
        for size in SIZES:
            if size > executor.max_batch or (measured and measured[-1][1] > LONGEST_STEP_S):
                break
            runs = (asyncio.to_thread(_fastest_s, model, step, size) for _ in range(executor.workers))
            times_s = await asyncio.gather(*runs)
            measured.append((size, sum(times_s) / len(times_s)))
        executor.cost.calibrate(step, measured)


def _fastest_s(model: CodecModel, step: str, size: int) -> float:
    """Time one step, on sessions of its own; the fastest of some, because what disturbs a machine makes it only slower."""
    rng = np.random.default_rng(SEED)
    sessions: Sequence[Any]
    if step == ENCODE:
        sessions = [model.encoder() for _ in range(size)]
        rows = rng.uniform(-0.5, 0.5, (size, model.info.frame_samples)).astype(np.float32)
    else:
        sessions = [model.decoder() for _ in range(size)]
        rows = rng.integers(0, model.info.codebook_entries, (size, model.info.default_levels)).astype(np.int32)
    run = getattr(model, step)
    times_s = []
    for _ in range(REPEATS):
        started_s = time.perf_counter()
        run(sessions, rows)
        times_s.append(time.perf_counter() - started_s)
    for session in sessions:
        session.close()
    return min(times_s)
