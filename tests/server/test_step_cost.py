from __future__ import annotations

import pytest

from server.step_cost import HANDLING_S, StepCost


def line(fixed_s: float, each_s: float) -> list[tuple[int, float]]:
    return [(size, fixed_s + each_s * size) for size in (1, 2, 4, 8, 16)]


def test_what_was_not_measured_costs_nothing():
    cost = StepCost()
    cost.record("encode_batch", 4, 1.0)
    assert not cost.known("encode_batch")
    assert (cost.parts_s("encode_batch"), cost.predict_s("encode_batch", 8)) == ((0.0, 0.0), 0.0)


def test_a_line_is_found_and_directions_are_apart():
    cost = StepCost()
    cost.calibrate("encode_batch", line(0.006, 0.004))
    cost.calibrate("decode_batch", line(0.001, 0.002))
    assert cost.parts_s("encode_batch") == pytest.approx((0.006, 0.004))
    assert cost.predict_s("encode_batch", 20) == pytest.approx(0.086)
    assert cost.predict_s("decode_batch", 3) == pytest.approx(0.007)


@pytest.mark.parametrize(
    "measured", [[(1, 0.01)], [(1, 0.01), (2, 0.01)], [(1, 0.02), (2, 0.01), (4, 0.005)], [(1, 0.001), (2, 0.01)]]
)
def test_noise_makes_nothing_free_of_charge_or_worse(measured):
    cost = StepCost()
    cost.calibrate("encode_batch", measured)
    fixed_s, each_s = cost.parts_s("encode_batch")
    assert fixed_s >= 0
    assert each_s > 0


def test_the_machine_s_pace_is_followed_and_one_hiccup_is_not():
    cost = StepCost()
    cost.calibrate("encode_batch", line(0.006, 0.004))
    cost.record("encode_batch", 4, 100.0)
    assert cost.predict_s("encode_batch", 4) < 0.022 * 2
    for _ in range(400):
        cost.record("encode_batch", 8, 3 * 0.038)
    assert cost.predict_s("encode_batch", 16) == pytest.approx(3 * 0.07, rel=0.01)
    assert not cost.known("decode_batch")


def test_the_event_loop_s_part_is_followed_and_other_work_is_not_taken_for_it():
    cost = StepCost()
    assert cost.handling_s == HANDLING_S
    cost.record_handling(1, 100.0)
    assert cost.handling_s < 1.02 * HANDLING_S
    for handled in range(1000):
        cost.record_handling(8, 8 * (0.001 if handled % 5 else 0.1))
    assert cost.handling_s == pytest.approx(0.001, rel=0.02)
