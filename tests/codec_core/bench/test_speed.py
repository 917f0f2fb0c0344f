from __future__ import annotations

from dataclasses import replace

import pytest

from codec_core import CodecModel, _ext
from codec_core.bench.speed import DIRECTIONS, Choice, measure_speed
from codec_core.bench.timing import FEWEST_CALLS
from codec_core.errors import SettingError, UnavailableError

ONE = Choice(batches=(1,), levels=(4,), numerics=("kyutai",), isas=("",), threads=(1,), seconds=0)


def no_progress(_done: int, _total: int) -> None:
    pass


def test_every_combination_is_measured(tiny_model: CodecModel):
    isas = tuple(_ext.Kernels.usable_isas())
    choice = Choice((1, 3), (4, 8), ("kyutai", "ggml"), isas, (1, 2), 0)
    reports: list[tuple[int, int]] = []
    speed = measure_speed(tiny_model, choice, lambda done, total: reports.append((done, total)))
    rows = [(row.numerics, row.isa, row.threads, row.levels, row.batch, row.direction) for row in speed.measurements]
    assert len(rows) == len(set(rows)) == choice.figures == 2 * len(isas) * 2 * 2 * 2 * len(DIRECTIONS)
    assert {(peak.isa, peak.threads) for peak in speed.peaks} == {(isa, threads) for isa in isas for threads in (1, 2)}
    assert speed.workloads.keys() == {4, 8}
    assert reports[-1][0] == reports[-1][1]
    assert speed.skipped == speed.stages == []


def test_what_the_figures_mean(tiny_model: CodecModel):
    for row in measure_speed(tiny_model, replace(ONE, batches=(1, 5)), no_progress).measurements:
        assert row.calls >= FEWEST_CALLS
        assert row.ms_per_frame_median == pytest.approx(row.ms_per_call_median / row.batch)
        assert 0 < row.ms_per_call_median <= row.ms_per_call_p95
        assert row.sessions_in_real_time * row.real_time_factor == pytest.approx(1)
        assert row.sessions_per_core * row.cpu_ms_per_frame_median == pytest.approx(80)
        assert row.percent_of_limit == pytest.approx(100 * row.limit_ms_per_frame / row.ms_per_frame_median)


def test_an_absent_instruction_set_is_skipped_and_named(tiny_model: CodecModel):
    speed = measure_speed(tiny_model, replace(ONE, isas=("sse9", "scalar"), threads=(1, 2)), no_progress)
    assert {row.isa for row in speed.measurements} == {"scalar"}
    (reason,) = speed.skipped
    assert "sse9" in reason
    with pytest.raises(UnavailableError, match="sse9"):
        measure_speed(tiny_model, replace(ONE, isas=("sse9",)), no_progress)


def test_unknown_numerics_are_refused(tiny_model: CodecModel):
    with pytest.raises(SettingError):
        measure_speed(tiny_model, replace(ONE, numerics=("exact",)), no_progress)


def test_a_profile_is_of_one_thread(tiny_model: CodecModel):
    speed = measure_speed(tiny_model, replace(ONE, threads=(1, 2), profile=True), no_progress)
    assert [stages.direction for stages in speed.stages] == ["encode", "decode"]
