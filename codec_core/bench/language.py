"""How fast a language model steps, and how much of the machine's memory bandwidth that is.

A step by itself reads every matrix once and does little with it, so that no order of computing is faster than reading. For each
number of threads a process of its own opens the model, steps it, and then measures at what rate as many threads read memory and
do nothing else.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from codec_core import _ext
from codec_core.bench.fresh_process import ask, peak_resident_bytes, resident_bytes
from codec_core.bench.timing import FEWEST_CALLS
from codec_core.errors import SettingError
from codec_core.language_model import LanguageModel, LanguageModelInfo
from codec_core.language_session import Sampling, step_entered

STEP_MS: Final = 80
"""Audio time of a step."""
BANDWIDTH_SECONDS: Final = 2.0
"""Long enough for many tries, of which others on the machine disturb some."""
BANDWIDTH_BYTES: Final = 1 << 30
"""Most memory that is read to measure the bandwidth: more than caches hold."""
_TEMPORAL_STAGES: Final = ("emb", "layers.", "hidden", "text_logits")


@dataclass(frozen=True)
class StepTimes:
    """Steps of a batch of streams, from the start of the streams on."""

    batch: int
    steps: int
    step_ms_median: float
    step_ms_p95: float
    temporal_ms_median: float
    """Of the temporal transformer, from the embeddings to the text's logits."""
    depformer_ms_median: float
    """Of all its sub-steps, choices included."""
    read_bytes_per_s: float
    """Matrices of a step by its median time."""
    percent_of_bandwidth: float
    real_time_factor: float
    """Compute time per audio time: up to 1 all streams of the batch are in real time."""


@dataclass(frozen=True)
class LanguageRun:
    """One number of threads."""

    isa: str
    threads: int
    load_seconds: float
    file_bytes: int
    weights_bytes: int
    """In memory."""
    temporal_bytes: int
    depformer_bytes: int
    """Matrices that one step multiplies, as they are in memory."""
    state_bytes: int
    """Of one stream."""
    loaded_bytes: int
    """RAM of the process with the model, without streams."""
    in_use_bytes: int
    """RAM of the process after the steps of the largest batch."""
    peak_bytes: int
    """The most RAM it had until then."""
    bandwidth_bytes_per_s: float
    """At which as many threads read memory and do nothing else: the best of many tries."""
    steps: tuple[StepTimes, ...]


def measure_steps(
    path: str, *, batches: Sequence[int], threads: Sequence[int], isa: str, seconds: float, budget_bytes: int | None
) -> Iterator[LanguageRun]:
    """Open a model for each number of threads, step it in batches, and yield what that took.

    Args:
        path: the model file.
        batches: streams of a batch.
        threads: of one step.
        isa: the instruction set; empty: the best this machine has.
        seconds: to spend on each batch.
        budget_bytes: most memory for weights; None: no limit.

    Raises:
        UnavailableError: a process died, and tells why.
        SettingError: no such instruction set.

    """
    if isa and isa not in _ext.Kernels.usable_isas():
        raise SettingError("isa", isa, " or ".join(_ext.Kernels.usable_isas()))
    for number in threads:
        request = {"path": path, "threads": number, "batches": list(batches), "seconds": seconds, "budget_bytes": budget_bytes}
        answer = ask(__name__, request, isa)
        yield LanguageRun(**answer | {"steps": tuple(StepTimes(**times) for times in answer["steps"])})


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    """Load, step and measure; what the process does that :func:`.ask` starts."""
    begin = time.perf_counter()
    model = LanguageModel.open(request["path"], request["threads"], request["budget_bytes"])
    load_seconds = time.perf_counter() - begin
    loaded = resident_bytes()
    raw = [_time_steps(model, batch, request["seconds"]) for batch in request["batches"]]
    in_use, peak = resident_bytes(), peak_resident_bytes()
    info = model.info
    step_bytes = info.temporal_bytes + info.depformer_bytes
    bandwidth = _ext.read_bytes_per_s(info.isa, info.threads, BANDWIDTH_SECONDS, min(step_bytes, BANDWIDTH_BYTES))
    run = LanguageRun(
        isa=info.isa,
        threads=info.threads,
        load_seconds=load_seconds,
        file_bytes=Path(info.path).stat().st_size,
        weights_bytes=info.weights_bytes,
        temporal_bytes=info.temporal_bytes,
        depformer_bytes=info.depformer_bytes,
        state_bytes=info.state_bytes,
        loaded_bytes=loaded,
        in_use_bytes=in_use,
        peak_bytes=peak,
        bandwidth_bytes_per_s=bandwidth,
        steps=tuple(_described(info, batch, times, bandwidth) for batch, times in zip(request["batches"], raw, strict=True)),
    )
    return asdict(run)


def _time_steps(model: LanguageModel, batch: int, seconds: float) -> list[tuple[float, float, float]]:
    """Return milliseconds of whole steps, of the temporal transformer and of the depformer; the first step is not counted."""
    sessions = [model.session(Sampling(seed=lane)) for lane in range(batch)]
    rng = np.random.default_rng(1)
    times: list[tuple[float, float, float]] = []
    stop = time.perf_counter() + seconds
    while len(times) <= FEWEST_CALLS or time.perf_counter() < stop:
        codes = rng.integers(0, model.info.codebook_entries, (batch, model.info.user_levels), np.int32)
        clock = _ext.StageClock()
        begin = time.perf_counter()
        clock.start()
        step_entered(sessions, codes, None, clock)  # type: ignore[arg-type]
        whole = time.perf_counter() - begin
        temporal = sum(seconds for name, seconds in clock.seconds if name.startswith(_TEMPORAL_STAGES))
        times.append((1000 * whole, 1000 * temporal, 1000 * (whole - temporal)))
    return times[1:]


def _described(
    info: LanguageModelInfo, batch: int, times: list[tuple[float, float, float]], bandwidth_bytes_per_s: float
) -> StepTimes:
    whole, temporal, rest = (np.array(column) for column in zip(*times, strict=True))
    median = float(np.median(whole))
    rate = 1000 * (info.temporal_bytes + info.depformer_bytes) / median
    return StepTimes(
        batch=batch,
        steps=len(times),
        step_ms_median=median,
        step_ms_p95=float(np.percentile(whole, 95)),
        temporal_ms_median=float(np.median(temporal)),
        depformer_ms_median=float(np.median(rest)),
        read_bytes_per_s=rate,
        percent_of_bandwidth=100 * rate / bandwidth_bytes_per_s,
        real_time_factor=median / STEP_MS,
    )


if __name__ == "__main__":
    print(json.dumps(_answer(json.loads(sys.argv[1]))))
