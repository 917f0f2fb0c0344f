from __future__ import annotations

import itertools
import random

import pytest

from codec_core.client.timing import LatencyMeter, Pacer, delays_s


def test_a_chunk_is_due_when_its_last_sample_would_have_been_heard():
    pacer = Pacer(100.0)
    assert pacer.delay_s(0, 8, 50.0) == pytest.approx(0.08)
    assert pacer.delay_s(0, 16, 50.1) == pytest.approx(0.06)
    assert pacer.delay_s(0, 24, 51.0) == 0
    assert pacer.delay_s(1, 8, 60.0) == pytest.approx(0.08)
    assert pacer.delay_s(0, 24, 60.0) == 0


def test_latency_counts_from_the_last_input_of_a_frame():
    meter = LatencyMeter(10.0)
    meter.sent(4, 1.0)
    meter.sent(6, 2.0)
    meter.sent(10, 3.0)
    assert meter.lag_frames == 2
    assert meter.answered(0, 2.5) == pytest.approx(500)
    assert meter.answered(1, 3.25) == pytest.approx(250)
    assert meter.lag_frames == 0
    assert (meter.percentile_ms(50), meter.percentile_ms(100)) == (pytest.approx(375), pytest.approx(500))


def test_a_flush_fills_the_frame():
    meter = LatencyMeter(10.0)
    meter.sent(13, 1.0)
    assert meter.lag_frames == 1
    meter.flush_sent(2.0)
    assert (meter.lag_frames, meter.sent_frames) == (2, 2)
    assert meter.answered(1, 2.1) == pytest.approx(100)
    meter.sent(10, 3.0)
    assert meter.answered(2, 3.1) == pytest.approx(100)


def test_after_a_resume_only_new_input_has_a_latency():
    meter = LatencyMeter(10.0)
    assert meter.percentile_ms(50) is None
    meter.sent(40, 1.0)
    meter.restart(20)
    assert meter.answered(1, 5.0) is None
    meter.sent(10, 6.0)
    assert meter.answered(2, 6.5) == pytest.approx(500)
    meter.restart()
    assert (meter.sent_frames, meter.answered_frames, meter.lag_frames) == (0, 0, 0)


def test_waits_grow_to_their_bound_and_differ():
    several = [list(itertools.islice(delays_s(0.1, 2.0, random.Random(seed)), 12)) for seed in range(200)]
    for waits in several:
        assert all(0 <= wait <= min(2.0, 0.1 * 2**index) for index, wait in enumerate(waits))
    last = [waits[-1] for waits in several]
    assert min(last) < 0.2
    assert max(last) > 1.8
