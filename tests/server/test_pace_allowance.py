from __future__ import annotations

import pytest

from server.pace_allowance import BURST_S, PaceAllowance


def test_a_burst_passes_and_what_is_faster_waits(clock):
    pace = PaceAllowance(4, clock)
    assert pace.take(BURST_S) == 0
    assert pace.take(2.0) == pytest.approx(0.5)
    clock.now_s += 0.5
    assert pace.take(0.0) == pytest.approx(0)


def test_who_waits_as_told_is_read_at_the_pace(clock):
    pace = PaceAllowance(4, clock)
    for _ in range(10_000):
        clock.now_s += pace.take(0.08)
    assert clock.now_s - 100 == pytest.approx((800 - BURST_S) / 4)


def test_real_time_never_waits_and_saves_up_no_more_than_the_burst(clock):
    pace = PaceAllowance(1, clock)
    for _ in range(1000):
        clock.now_s += 0.08
        assert pace.take(0.08) == 0
    clock.now_s += 1000
    assert pace.take(BURST_S + 1) == pytest.approx(1)


def test_a_free_pace_never_waits(clock):
    pace = PaceAllowance(None, clock)
    assert pace.take(1e9) == pace.take(1e9) == 0
