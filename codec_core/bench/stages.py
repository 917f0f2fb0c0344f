"""Where the time of a step goes: the time between one named stage and the next, as the engine passes them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from codec_core import _ext
from codec_core.bench.streams import Lanes
from codec_core.bench.timing import FEWEST_CALLS
from codec_core.model import CodecModel

AFTER_THE_LAST: Final = {"encode": "encoder.codes", "decode": "decoder.return"}
"""Name for what comes after the last stage that the engine names: quantising; handing over the sound."""


@dataclass(frozen=True)
class StageTimes:
    """The stages of one direction of one variant at one batch size, on one thread."""

    numerics: str
    isa: str
    levels: int
    batch: int
    direction: str
    calls: int
    ms_by_stage: dict[str, float]
    """Of one stream's frame, the mean of all calls, in the order of the step; a stage that lanes run one by one is added up."""
    watched_ms_per_frame: float
    """Median of the calls whose stages were timed."""
    plain_ms_per_frame: float
    """Median of as many calls in between, without the clock: the difference is what looking costs."""


def time_stages(model: CodecModel, lanes: Lanes, levels: int, seconds: float) -> list[StageTimes]:
    """Time the stages of both directions for ``seconds`` each. ``model`` has one thread."""
    encoders = [session.native for session in lanes.encoders]
    decoders = [session.native for session in lanes.decoders]
    steps: dict[str, Callable[[int, object], Any]] = {
        "encode": lambda i, observer: _ext.encode_batch(encoders, lanes.pcm(i), observer),
        "decode": lambda i, observer: _ext.decode_batch(decoders, lanes.codes(i), observer),
    }
    return [
        _time_direction(model, step, direction=direction, levels=levels, batch=len(encoders), seconds=seconds)
        for direction, step in steps.items()
    ]


def _time_direction(
    model: CodecModel, step: Callable[[int, object], Any], *, direction: str, levels: int, batch: int, seconds: float
) -> StageTimes:
    clock = _ext.StageClock()
    watched_ms: list[float] = []
    plain_ms: list[float] = []
    step(0, None)
    stop = time.perf_counter() + seconds
    while len(plain_ms) < FEWEST_CALLS or time.perf_counter() < stop:
        i, begin = 2 * len(plain_ms), time.perf_counter()
        clock.start()
        step(i, clock)
        clock.note(AFTER_THE_LAST[direction])
        middle = time.perf_counter()
        step(i + 1, None)
        plain_ms.append((time.perf_counter() - middle) * 1000)
        watched_ms.append((middle - begin) * 1000)
    frames = len(watched_ms) * batch
    return StageTimes(
        numerics=model.info.numerics,
        isa=model.info.isa,
        levels=levels,
        batch=batch,
        direction=direction,
        calls=len(watched_ms),
        ms_by_stage={name: 1000 * in_all_s / frames for name, in_all_s in clock.seconds},
        watched_ms_per_frame=float(np.median(watched_ms)) / batch,
        plain_ms_per_frame=float(np.median(plain_ms)) / batch,
    )
