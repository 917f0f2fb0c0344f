"""Measures what steps cost, before anybody is served."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from codec_core import CodecModel, LanguageModel
from codec_core.bench.streams import SteadyState
from server.batch_schedule import FRAME_S
from server.codec_executor import DECODE, ENCODE, LANGUAGE, CodecExecutor

SIZES: Final = (1, 2, 4, 8, 16)
REPEATS: Final = 3
LONGEST_STREAM_S: Final = 4.0
LONGEST_STEP_S: Final = 2 * FRAME_S
"""No larger batch is measured once a step takes this long: more could not be served anyway."""


async def calibrate(executor: CodecExecutor, model: CodecModel, language: LanguageModel | None = None) -> None:
    """Run steps of several sizes and lay the executor's cost lines; takes some three seconds with the full-size model.

    What is measured are streams whose attention has as much to look at as it ever will: new ones cost a fifth less, and by that
    more would be let in than can stay. The measuring runs on as many threads as the executor's workers, since they share the
    machine's memory. A language model's streams are new ones: filling its attention would take minutes, and what it adds then
    shows in the steps themselves.
    """
    state = await asyncio.to_thread(_long_stream, model)
    for step in (ENCODE, DECODE):
        await _measure(executor, step, partial(_step_s, model, state, step))
    if language is not None:
        await _measure(executor, LANGUAGE, partial(_language_step_s, language))


async def _measure(executor: CodecExecutor, step: str, step_s: Callable[[int], float]) -> None:
    """Lay the line of one direction, of which ``step_s`` times a step of so many sessions."""
    measured: list[tuple[int, float]] = []
    for size in SIZES:
        if size > executor.max_batch or (measured and measured[-1][1] > LONGEST_STEP_S):
            break
        times_s = await asyncio.gather(*(asyncio.to_thread(step_s, size) for _ in range(executor.workers)))
        measured.append((size, sum(times_s) / len(times_s)))
    executor.cost.calibrate(step, measured)


def _long_stream(model: CodecModel) -> SteadyState:
    """Run a stream until its attention is full, or for :data:`LONGEST_STREAM_S` on a machine on which that would take long."""
    started_s = time.perf_counter()
    SteadyState.reach(model, model.info.default_levels, _unseen, most_frames=1)
    frame_s = time.perf_counter() - started_s
    most_frames = max(int(LONGEST_STREAM_S / frame_s), 1)
    return SteadyState.reach(model, model.info.default_levels, _unseen, most_frames=most_frames)


def _step_s(model: CodecModel, state: SteadyState, step: str, size: int) -> float:
    """Time one step, on sessions of its own."""
    rows = np.arange(size)
    sessions: Sequence[Any]
    frames: npt.NDArray[Any]
    if step == ENCODE:
        sessions, frames = [model.restore_encoder(state.encoder) for _ in rows], state.pcm
    else:
        sessions, frames = [model.restore_decoder(state.decoder) for _ in rows], state.codes
    return _fastest_s(getattr(model, step), sessions, [frames[(rows + repeat) % len(frames)] for repeat in range(REPEATS)])


def _language_step_s(model: LanguageModel, size: int) -> float:
    """Time one step of a language model, on sessions of its own."""
    sessions = [model.session() for _ in range(size)]
    codes = np.arange(size * model.info.user_levels, dtype=np.int32).reshape(size, -1) % model.info.codebook_entries
    return _fastest_s(model.step_batch, sessions, [codes] * REPEATS)


def _fastest_s(run: Callable[..., Any], sessions: Sequence[Any], batches: Sequence[npt.NDArray[Any]]) -> float:
    """Time a step of each batch and close the sessions; the fastest, because what disturbs a machine makes it only slower."""
    times_s = []
    for batch in batches:
        started_s = time.perf_counter()
        run(sessions, batch)
        times_s.append(time.perf_counter() - started_s)
    for session in sessions:
        session.close()
    return min(times_s)


def _unseen(done: int, total: int) -> None:
    """Take the progress of what nobody watches."""
