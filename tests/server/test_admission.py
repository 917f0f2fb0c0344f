from __future__ import annotations

import math

import pytest

from server.admission import LATENESS_WINDOW_S, LEAST_LATE_FRAMES, RESERVE, Admission, demand_of
from server.errors import NotOfferedError, OverloadedError
from server.step_cost import StepCost

ENCODE = demand_of("encode", 8)


def admission(policy="measured", fixed_s=0.006, each_s=0.004, **options) -> Admission:
    cost = StepCost()
    for step in ("encode_batch", "decode_batch"):
        cost.calibrate(step, [(size, fixed_s + each_s * size) for size in (1, 2, 4)])
    return Admission(policy, cost, retry_after_ms=1234, **options)


def admitted(to: Admission, demand=ENCODE) -> int:
    for count in range(1000):
        if to.refusal(demand) is not None:
            with pytest.raises(OverloadedError, match="expected at most") as refusal:
                to.admit(demand)
            assert refusal.value.retry_after_ms == 1234
            return count
        to.admit(demand)
    return 1000


def test_a_mode_asks_for_its_steps():
    assert demand_of("encode", 8) == (("encode_batch", 8),)
    assert demand_of("decode", 4) == (("decode_batch", 4),)
    assert demand_of("echo", 2) == (("encode_batch", 2), ("decode_batch", 2))
    assert demand_of("talk", 8, 4) == (("encode_batch", 8), ("language_batch", 4), ("decode_batch", 4))
    assert demand_of("talk", 8) == (("encode_batch", 8), ("language_batch", 0))


@pytest.mark.parametrize(("step_s", "is_possible"), [(0.05, True), (0.07, False), (3.0, False)])
def test_talking_needs_real_time_even_alone(step_s, is_possible):
    """The codec's steps take 20 ms; a stream of its own is let in whatever they take."""
    talk = demand_of("talk", 8, 8)
    service, patient = admission(), admission("count")
    for one in (service, patient):
        one._cost.calibrate("language_batch", [(1, step_s), (2, step_s * 1.1)])
    patient.admit(talk)
    if is_possible:
        service.admit(talk)
        return
    with pytest.raises(NotOfferedError, match="at most 80 ms; `mimi talk` answers a recording"):
        service.admit(talk)
    service.admit(talk, unasked=True)


def test_beside_others_a_conversation_waits_for_room():
    service = admission()
    service._cost.calibrate("language_batch", [(1, 0.05), (2, 0.055)])
    service.admit(demand_of("talk", 8, 8))
    with pytest.raises(OverloadedError):
        service.admit(demand_of("talk", 8, 8))
    with pytest.raises(OverloadedError):
        service.admit(ENCODE)


def test_streams_are_let_in_while_all_stay_in_time():
    """ANCHORS C3, E1: refused by what was measured, before anybody is late."""
    service = admission()
    count = admitted(service)
    assert count == service.most_streams(ENCODE, 1000)
    assert 8 < count < 0.080 * (1 - RESERVE) / 0.004
    load = service.load()
    assert 0 <= load.headroom < 0.1
    assert load.predicted_latency_s <= 0.080
    assert service.load(ENCODE).headroom < 0
    service.release(ENCODE)
    service.admit(ENCODE)
    with pytest.raises(OverloadedError):
        service.admit(ENCODE)


def test_the_event_loop_s_part_counts():
    """ANCHORS E1: frames are read and answered by one loop, while no step runs."""
    service, busy = admission(), StepCost()
    busy.calibrate("encode_batch", [(size, 0.006 + 0.004 * size) for size in (1, 2, 4)])
    for _ in range(200):
        busy.record_handling(1, 0.003)
    assert admitted(Admission("measured", busy, retry_after_ms=1234)) < admitted(service)


def test_what_is_given_back_is_free_again():
    service = admission()
    for _ in range(2):
        service.admit(ENCODE)
        service.admit(demand_of("echo", 3))
    for _ in range(2):
        service.release(demand_of("echo", 3))
        service.release(ENCODE)
    assert (service.load().headroom, service.load().predicted_latency_s) == (1.0, 0.0)


def test_dearer_streams_and_slower_machines_get_fewer_places():
    assert admitted(admission(), demand_of("echo", 8)) < admitted(admission()) / 1.5
    assert admitted(admission(each_s=0.008)) < admitted(admission())
    assert admitted(admission(workers=2)) > admitted(admission())
    assert admitted(admission(most_latency_ms=200)) >= admitted(admission())
    assert admission(each_s=0.05).load(ENCODE * 2).predicted_latency_s == math.inf


def test_a_machine_that_is_too_slow_serves_one_all_the_same():
    service = admission(fixed_s=0.3, each_s=0.2)
    assert service.refusal(ENCODE) is None
    assert admitted(service) == 1
    assert "no end" in service.refusal(ENCODE)


def test_counting_and_an_unmeasured_machine_refuse_nobody():
    assert admitted(admission("count", fixed_s=0.5)) == 1000
    assert admitted(Admission("measured", StepCost())) == 1000
    assert admission("count").refusal(ENCODE) is None


def test_nobody_new_while_frames_are_late():
    now_s = [100.0]
    service = admission(clock_s=lambda: now_s[0])
    service.admit(ENCODE)
    for _ in range(LEAST_LATE_FRAMES - 1):
        service.frame_done("encode_batch", 0.2, 0.1, refused=False)
    assert service.late_share == 0
    service.admit(ENCODE)
    service.frame_done("encode_batch", 0.2, 0.1, refused=False)
    with pytest.raises(OverloadedError, match="late"):
        service.admit(ENCODE)
    for _ in range(1000):
        service.frame_done("encode_batch", 0.02, -0.06, refused=False)
    service.admit(ENCODE)
    for _ in range(100):
        service.frame_done("encode_batch", 0.2, 0.1, refused=False)
    assert service.refusal(ENCODE) is not None
    now_s[0] += LATENESS_WINDOW_S + 0.1
    assert service.late_share == 0
    service.admit(ENCODE)
