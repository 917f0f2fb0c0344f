"""Times of steps: for every combination of numerics, instruction set, threads, levels, batch and direction asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final

from codec_core import _ext
from codec_core.bench.limits import Peak, Workload, workload
from codec_core.bench.stages import StageTimes, time_stages
from codec_core.bench.streams import Lanes, Progress, SteadyState
from codec_core.bench.timing import CallTimes, time_calls
from codec_core.errors import UnavailableError
from codec_core.model import CodecModel
from codec_core.variant import open_variant
from codec_core.window import WindowStats

DIRECTIONS: Final = ("encode", "decode", "duplex")


@dataclass(frozen=True)
class Measurement:
    """Times of one direction of one variant at one batch size. ``duplex`` is a frame encoded and a frame decoded."""

    numerics: str
    isa: str
    threads: int
    levels: int
    batch: int
    direction: str
    calls: int
    ms_per_frame_median: float
    """Of one stream's frame: the call's time by the clock, divided by the batch."""
    cpu_ms_per_frame_median: float
    """The same in CPU time of all threads together."""
    ms_per_call_median: float
    ms_per_call_p95: float
    real_time_factor: float
    """Compute time per audio time of one stream, by the clock."""
    sessions_in_real_time: float
    """Streams these threads could keep up with, in this direction alone."""
    sessions_per_core: float
    """The same for each core's worth of CPU time."""
    limit_ms_per_frame: float
    """No order of computing needs less: see :mod:`codec_core.bench.limits`."""
    percent_of_limit: float
    """The limit by the median."""

    @classmethod
    def of(
        cls, model: CodecModel, times: CallTimes, *, levels: int, batch: int, direction: str, limit_ms: float
    ) -> Measurement:
        """Say what the times of calls mean."""
        info, per_frame, cpu = model.info, times.wall_ms_median / batch, times.cpu_ms_median / batch
        frame_ms = 1000 / info.frame_rate_hz
        return cls(
            numerics=info.numerics,
            isa=info.isa,
            threads=info.threads,
            levels=levels,
            batch=batch,
            direction=direction,
            calls=len(times.wall_ms),
            ms_per_frame_median=per_frame,
            cpu_ms_per_frame_median=cpu,
            ms_per_call_median=times.wall_ms_median,
            ms_per_call_p95=times.wall_ms_p95,
            real_time_factor=per_frame / frame_ms,
            sessions_in_real_time=frame_ms / per_frame,
            sessions_per_core=frame_ms / cpu,
            limit_ms_per_frame=limit_ms,
            percent_of_limit=100 * limit_ms / per_frame,
        )


@dataclass(frozen=True)
class Choice:
    """What to measure: every combination of these."""

    batches: tuple[int, ...]
    levels: tuple[int, ...]
    numerics: tuple[str, ...]
    isas: tuple[str, ...]
    threads: tuple[int, ...]
    seconds: float
    """Of each figure."""
    profile: bool = False
    """Also where the time goes, on one thread."""

    @property
    def figures(self) -> int:
        """How many there are."""
        variants = len(self.numerics) * len(self.isas) * len(self.threads)
        return variants * len(self.levels) * len(self.batches) * len(DIRECTIONS)


@dataclass
class Speed:
    """What was measured, in the order of measuring."""

    measurements: list[Measurement] = field(default_factory=list)
    peaks: list[Peak] = field(default_factory=list)
    workloads: dict[int, Workload] = field(default_factory=dict)
    """By levels."""
    stages: list[StageTimes] = field(default_factory=list)
    """Only where a profile was asked for."""
    windows: list[WindowStats] = field(default_factory=list)
    """What the tensor window of each variant has done; none where all weights are resident."""
    skipped: list[str] = field(default_factory=list)
    """What this machine cannot run, and why."""


def measure_speed(model: CodecModel, choice: Choice, progress: Progress) -> Speed:
    """Measure every combination; what an instruction set's absence rules out is named in the result.

    The variants are opened one after the other, so that no more than two copies of the weights are in memory.

    Raises:
        UnavailableError: this machine has none of the instruction sets.
        SettingError: no such numerics.

    """
    return _Measuring(model, choice, progress).run()


class _Measuring:
    def __init__(self, model: CodecModel, choice: Choice, progress: Progress) -> None:
        self._model = model
        self._choice = choice
        self._progress = progress
        self._states: dict[tuple[str, int], SteadyState] = {}
        self._done = 0.0
        self._steps = choice.figures + len(choice.numerics) * len(choice.levels)
        self._speed = Speed()

    def run(self) -> Speed:
        inspection = _ext.inspect_model(self._model.info.path)
        for numerics, isa, threads in product(self._choice.numerics, self._choice.isas, self._choice.threads):
            try:
                variant = self._open(numerics, isa, threads)
            except UnavailableError as error:
                if str(error) not in self._speed.skipped:
                    self._speed.skipped.append(str(error))
                continue
            self._measure_variant(variant, inspection)
            if variant.window_stats is not None:
                self._speed.windows.append(variant.window_stats)
        if not self._speed.measurements:
            raise UnavailableError("instruction set", ", ".join(self._choice.isas), " or ".join(_ext.Kernels.usable_isas()))
        return self._speed

    def _open(self, numerics: str, isa: str, threads: int) -> CodecModel:
        info = self._model.info
        if (numerics, isa or _ext.Kernels.usable_isas()[0], threads) == (info.numerics, info.isa, info.threads):
            return self._model
        return open_variant(self._model, numerics=numerics, isa=isa, threads=threads)

    def _measure_variant(self, variant: CodecModel, inspection: dict[str, Any]) -> None:
        for levels in self._choice.levels:
            work = self._speed.workloads.setdefault(levels, workload(inspection, levels, variant.info.weights_bytes))
            peak = self._peak(variant, work)
            state = self._state(variant, levels)
            for batch in self._choice.batches:
                lanes = Lanes(variant, state, batch)
                for direction, times in self._timed(lanes):
                    limit_ms = work.limit_ms(direction, batch, peak)
                    row = Measurement.of(variant, times, levels=levels, batch=batch, direction=direction, limit_ms=limit_ms)
                    self._speed.measurements.append(row)
                if self._choice.profile and variant.info.threads == 1:
                    self._speed.stages += time_stages(variant, lanes, levels, self._choice.seconds)

    def _timed(self, lanes: Lanes) -> Iterator[tuple[str, CallTimes]]:
        steps: dict[str, Callable[[int], None]] = {
            "encode": lanes.encode,
            "decode": lanes.decode,
            "duplex": lanes.duplex,
        }
        for direction in DIRECTIONS:
            yield direction, time_calls(steps[direction], self._choice.seconds)
            self._advance(1)

    def _state(self, variant: CodecModel, levels: int) -> SteadyState:
        """Return the steady state; the first variant of its numerics reaches it for all, since their bits are the same."""
        key = variant.info.numerics, levels
        if key not in self._states:
            before = self._done
            self._states[key] = SteadyState.reach(variant, levels, lambda done, total: self._to(before + done / total))
        return self._states[key]

    def _peak(self, variant: CodecModel, work: Workload) -> Peak:
        for peak in self._speed.peaks:
            if (peak.isa, peak.threads) == (variant.info.isa, variant.info.threads):
                return peak
        frame = work.encode
        read_bytes = round(frame.weights * work.bytes_per_weight) + frame.context_bytes
        self._speed.peaks.append(Peak.measure(variant.info.isa, variant.info.threads, read_bytes))
        return self._speed.peaks[-1]

    def _advance(self, steps: float) -> None:
        self._to(self._done + steps)

    def _to(self, done: float) -> None:
        self._done = done
        self._progress(round(100 * done), 100 * self._steps)
