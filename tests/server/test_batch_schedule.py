"""Who goes next, on a clock of the test's own."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from server.batch_schedule import AHEAD_STEP_S, FRAME_S, MOST_AHEAD_S, MOST_BEHIND_S, RESET, BatchSchedule, Job
from server.step_cost import StepCost


class Stream:
    """A session of which only the levels matter."""

    def __init__(self, levels: int = 8) -> None:
        self.levels = levels

    def reset(self) -> None: ...

    def close(self) -> None: ...


def cost_of(fixed_s: float, each_s: float) -> StepCost:
    cost = StepCost()
    for step in ("encode_batch", "decode_batch"):
        cost.calibrate(step, [(size, fixed_s + each_s * size) for size in (1, 2, 4)])
    return cost


class Timeline:
    """A schedule, with frames put in at times."""

    def __init__(self, *, max_batch: int = 64, gather_s: float = 0.0, cost: StepCost | None = None) -> None:
        self.schedule = BatchSchedule(cost or cost_of(0.006, 0.004), max_batch=max_batch, gather_s=gather_s)

    def add(self, stream: Stream, now_s: float, step: str = "encode_batch") -> Job:
        job = Job(step, stream, np.empty(0), asyncio.get_running_loop().create_future(), now_s)
        self.schedule.add(job)
        return job

    def take(self, now_s: float, *busy: Stream) -> list[Stream]:
        return [job.session for job in self.schedule.take({id(stream) for stream in busy}, now_s)]


async def test_all_who_are_ready_go_together_the_earliest_first():
    line, streams = Timeline(), [Stream() for _ in range(5)]
    for index, stream in enumerate(streams):
        line.add(stream, index * 0.01)
    assert line.take(0.05) == streams
    assert line.take(0.05) == []
    assert line.schedule.waiting_frames == 0


async def test_the_most_pressing_direction_goes_first_and_none_is_forgotten():
    line = Timeline()
    other, first, second = Stream(32), Stream(), Stream()
    line.add(second, 0.02)
    line.add(other, 0.01)
    line.add(first, 0.0, "decode_batch")
    assert [line.take(0.02) for _ in range(3)] == [[first], [other], [second]]


async def test_frames_of_one_session_keep_their_order_and_wait_for_its_step():
    line, stream, mate = Timeline(), Stream(), Stream()
    jobs = [line.add(stream, 0.0), line.add(stream, 0.0, RESET), line.add(stream, 0.0)]
    line.add(mate, 0.0)
    assert line.take(0.0, stream) == [mate]
    taken = [line.schedule.take(set(), 0.0)[0] for _ in range(3)]
    assert taken == jobs


async def test_who_runs_ahead_yields_to_real_time_but_never_starves():
    line, greedy, paced = Timeline(), Stream(), Stream()
    for _ in range(10):
        line.add(greedy, 0.0)
        line.take(0.0)
    late = line.add(greedy, 0.0)
    assert late.deadline_s == pytest.approx(11 * FRAME_S)
    # A frame that comes much later is due earlier, and whoever is ahead does not make its step longer.
    crowd = [Stream() for _ in range(6)]
    for stream in (paced, *crowd):
        line.add(stream, 0.3)
    assert line.take(0.3) == [paced, *crowd]
    assert line.take(0.3) == [greedy]
    # Its time comes, however many others there are: nobody waits for longer than they have run ahead.
    waiting = line.add(greedy, 0.31)
    now_s = waiting.deadline_s - FRAME_S / 2
    for stream in (paced, *crowd):
        line.add(stream, now_s)
    assert line.take(now_s)[0] is greedy


async def test_nobody_runs_ahead_without_end():
    line, greedy = Timeline(), Stream()
    deadlines_s = [line.add(greedy, 0.0).deadline_s for _ in range(100)]
    assert deadlines_s == sorted(deadlines_s)
    assert deadlines_s[-1] == pytest.approx(MOST_AHEAD_S + FRAME_S)
    assert line.add(greedy, 50.0).deadline_s == pytest.approx(50 + FRAME_S)


async def test_steps_for_those_ahead_are_short_only_while_somebody_is_in_real_time():
    line, crowd, paced = Timeline(), [Stream() for _ in range(8)], Stream()
    for _ in range(3):
        for stream in crowd:
            line.add(stream, 0.0)
        while line.take(0.0):
            pass
    for stream in crowd:
        line.add(stream, 0.0)
    assert line.take(0.0) == crowd
    for stream in crowd:
        line.add(stream, 0.0)
    line.add(paced, 0.0)
    line.schedule.take(set(), 0.0)
    taken = line.take(0.0)
    assert 0 < len(taken) < len(crowd)
    assert 0.006 + 0.004 * len(taken) <= AHEAD_STEP_S


async def test_a_cap_on_batches_and_frames_that_nobody_waits_for():
    line, streams = Timeline(max_batch=2), [Stream() for _ in range(5)]
    jobs = [line.add(stream, 0.0) for stream in streams]
    jobs[1].future.cancel()
    assert line.schedule.waiting_frames == 4
    assert [len(line.take(0.0)) for _ in range(3)] == [2, 2, 0]


async def test_the_gather_window_is_bounded_and_ends_when_everybody_is_there():
    line, first, second = Timeline(gather_s=0.01), Stream(), Stream()
    line.add(first, 0.0)
    # Nobody else is known, so there is nobody to wait for.
    assert line.take(0.0) == [first]
    line.add(second, 0.1)
    assert line.take(0.1) == []
    assert line.schedule.wait_s(set(), 0.104) == pytest.approx(0.006)
    assert line.take(0.1101) == [second]
    line.add(second, 0.2)
    line.add(first, 0.203)
    assert line.take(0.203) == [second, first]
    assert line.schedule.wait_s(set(), 0.203) is None
    line.schedule.forget(first)
    line.add(second, 0.3)
    assert line.take(0.3) == [second]


async def test_sessions_are_known_until_they_are_forgotten_or_gone():
    line, kept, forgotten = Timeline(), Stream(), Stream()
    for stream in (kept, forgotten, Stream()):
        line.add(stream, 0.0)
    line.take(0.0)
    line.schedule.forget(forgotten)
    del stream
    assert line.schedule.known_sessions == 1


async def test_who_has_fallen_behind_is_known_to_be_late_and_catches_up():
    line, stream = Timeline(), Stream()
    line.add(stream, 0.0)
    line.take(0.0)
    # The answer takes three frames' time; what has come meanwhile is handed in at once.
    line.schedule.answered(stream, 3 * FRAME_S)
    behind = line.add(stream, 3 * FRAME_S + 0.001)
    assert (behind.arrived_s, behind.deadline_s) == (pytest.approx(FRAME_S), pytest.approx(2 * FRAME_S))
    line.take(3 * FRAME_S)
    line.schedule.answered(stream, 3 * FRAME_S + 0.01)
    assert line.add(stream, 3 * FRAME_S + 0.01).deadline_s == pytest.approx(3 * FRAME_S)
    line.take(3 * FRAME_S)
    # Who was answered and then came later was not waiting.
    line.schedule.answered(stream, 3 * FRAME_S + 0.02)
    assert line.add(stream, 3 * FRAME_S + 0.06).deadline_s == pytest.approx(4 * FRAME_S + 0.06)


async def test_nobody_falls_behind_without_end():
    line, stream = Timeline(), Stream()
    line.add(stream, 0.0)
    line.take(0.0)
    line.schedule.answered(stream, 60.0)
    assert line.add(stream, 60.0).deadline_s == pytest.approx(60 - MOST_BEHIND_S + FRAME_S)
    line.schedule.answered(Stream(), 60.0)
