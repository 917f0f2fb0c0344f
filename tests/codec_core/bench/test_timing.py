from __future__ import annotations

import pytest

from codec_core.bench.timing import FEWEST_CALLS, CallTimes, time_calls


def test_one_call_goes_untimed_and_then_enough_are_timed():
    asked: list[int] = []
    times = time_calls(asked.append, 0)
    assert asked == [0, *range(FEWEST_CALLS)]
    assert len(times.wall_ms) == len(times.cpu_ms) == FEWEST_CALLS
    assert min(times.wall_ms) > 0


def test_calls_go_on_until_the_time_is_over():
    assert len(time_calls(lambda _i: None, 0.05).wall_ms) > FEWEST_CALLS


def test_a_slow_call_moves_the_median_little():
    times = CallTimes((3.0, 1.0, 2.0, 1000.0, 2.0), (1.0, 1.0, 9.0, 1.0, 1.0))
    assert (times.wall_ms_median, times.cpu_ms_median) == (2.0, 1.0)
    assert times.wall_ms_p95 == pytest.approx(3 + 0.8 * 997)
