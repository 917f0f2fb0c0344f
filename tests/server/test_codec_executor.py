"""The executor with the real engine: batches are invisible, errors reach their own waiter only."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest

from codec_core.errors import CodeRangeError, InputShapeError, NonFiniteInputError, SessionClosedError
from server.codec_executor import CodecExecutor
from server.errors import DrainingError

FRAMES = 6


@pytest.fixture
def executor(tiny_model):
    made = CodecExecutor(tiny_model)
    yield made
    made.close()


@pytest.fixture
def frames(rng):
    """Return frames of eight streams, [stream, frame, samples]."""
    return rng.uniform(-0.5, 0.5, (8, FRAMES, 1920)).astype(np.float32)


async def encoded(executor, session, pcm):
    return np.array([await executor.encode(session, frame) for frame in pcm])


async def test_eight_streams_go_together_and_get_their_own(executor, tiny_model, frames):
    sessions = [tiny_model.encoder(8) for _ in frames]
    results = await asyncio.gather(*(encoded(executor, *pair) for pair in zip(sessions, frames, strict=True)))
    for pcm, codes in zip(frames, results, strict=True):
        alone = tiny_model.encoder(8)
        assert np.array_equal(codes, [alone.encode(frame) for frame in pcm])
    assert executor.stats.largest_batch == 8
    assert executor.stats.frames == 8 * FRAMES
    assert executor.stats.batches < 2 * FRAMES + 2
    assert executor.waiting_frames == 0


async def test_directions_and_levels_go_apart(executor, tiny_model, frames):
    levels = (1, 8, 8, 32)
    encoders = [tiny_model.encoder(count) for count in levels]
    decoders = [tiny_model.decoder(count) for count in levels]
    steps = [executor.encode(encoder, frames[0, 0]) for encoder in encoders]
    steps += [executor.decode(decoder, np.zeros(count, np.int32)) for decoder, count in zip(decoders, levels, strict=True)]
    results = await asyncio.gather(*steps)
    assert [len(result) for result in results] == [1, 8, 8, 32, 1920, 1920, 1920, 1920]
    assert executor.stats.largest_batch == 2
    assert executor.stats.batches == 6


async def test_frames_of_one_session_keep_their_order(executor, tiny_model, frames):
    session, alone = tiny_model.encoder(8), tiny_model.encoder(8)
    results = await asyncio.gather(*(executor.encode(session, frame) for frame in frames[0]))
    assert np.array_equal(results, [alone.encode(frame) for frame in frames[0]])


async def test_only_the_guilty_hears_of_it(executor, tiny_model, frames):
    """ANCHORS A8: a frame that is refused harms no neighbour."""
    sessions = [tiny_model.encoder(8) for _ in range(4)]
    bad = frames[0, 0].copy()
    bad[77] = np.nan
    rows = [frames[1, 0], bad, frames[2, 0], np.zeros(100, np.float32)]
    steps = (executor.encode(session, row) for session, row in zip(sessions, rows, strict=True))
    results = await asyncio.gather(*steps, return_exceptions=True)
    assert isinstance(results[1], NonFiniteInputError)
    assert isinstance(results[3], InputShapeError)
    for index in (0, 2):
        assert np.array_equal(results[index], tiny_model.encoder(8).encode(rows[index]))
    assert executor.stats.refused_frames == 2
    # What was refused never happened, and the session goes on.
    assert np.array_equal(await executor.encode(sessions[1], frames[0, 1]), tiny_model.encoder(8).encode(frames[0, 1]))


async def test_a_code_out_of_range_reaches_its_waiter(executor, tiny_model):
    with pytest.raises(CodeRangeError):
        await executor.decode(tiny_model.decoder(2), np.array([0, 32], np.int32))


async def test_a_cancelled_frame_that_waits_is_dropped(executor, tiny_model, frames):
    """ANCHORS G6: nothing is computed for who is gone."""
    session = tiny_model.encoder(8)
    first = asyncio.ensure_future(executor.encode(session, frames[0, 0]))
    second = asyncio.ensure_future(executor.encode(session, frames[0, 1]))
    await asyncio.sleep(0)
    second.cancel()
    await first
    third = await executor.encode(session, frames[0, 2])
    alone = tiny_model.encoder(8)
    alone.encode(frames[0, 0])
    assert np.array_equal(third, alone.encode(frames[0, 2]))
    assert executor.stats.frames == 2


async def test_a_retired_session_is_closed_once_its_step_has_ended(executor, tiny_model, frames):
    session = tiny_model.encoder(8)
    step = asyncio.ensure_future(executor.encode(session, frames[0, 0]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    executor.retire(session)
    assert len(await step) == 8
    with pytest.raises(SessionClosedError):
        session.encode(frames[0, 0])
    idle = tiny_model.encoder(8)
    executor.retire(idle)
    with pytest.raises(SessionClosedError):
        await executor.encode(idle, frames[0, 0])


async def test_a_reset_runs_on_a_worker_in_its_turn_and_is_no_frame(executor, tiny_model, frames, monkeypatch):
    session = tiny_model.encoder(8)
    threads = []
    reset = session.reset
    monkeypatch.setattr(session, "reset", lambda: (threads.append(threading.current_thread()), reset()))
    step = executor.encode(session, frames[0, 0])
    first, _, again = await asyncio.gather(step, executor.reset(session), executor.encode(session, frames[0, 0]))
    assert np.array_equal(first, again)
    assert threads[0] is not threading.current_thread()
    assert (executor.stats.frames, executor.stats.batches, session.position_frames) == (2, 2, 1)


@pytest.mark.parametrize(("workers", "max_batch"), [(2, 3), (3, 1), (1, 2)])
async def test_workers_and_batch_caps_never_show(tiny_model, frames, workers, max_batch):
    executor = CodecExecutor(tiny_model, workers=workers, max_batch=max_batch)
    try:
        sessions = [tiny_model.encoder(8) for _ in frames]
        results = await asyncio.gather(*(encoded(executor, *pair) for pair in zip(sessions, frames, strict=True)))
    finally:
        executor.close()
    for pcm, codes in zip(frames, results, strict=True):
        alone = tiny_model.encoder(8)
        assert np.array_equal(codes, [alone.encode(frame) for frame in pcm])
    assert executor.stats.largest_batch <= max_batch


async def test_who_waits_when_the_executor_ends_is_told_so(tiny_model, frames):
    executor = CodecExecutor(tiny_model, max_batch=1)
    steps = [asyncio.ensure_future(executor.encode(tiny_model.encoder(8), frame)) for frame in frames[:, 0]]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    executor.close()
    results = await asyncio.gather(*steps, return_exceptions=True)
    assert all(isinstance(result, np.ndarray | DrainingError) for result in results)
    assert any(isinstance(result, DrainingError) for result in results)
    with pytest.raises(DrainingError):
        await executor.encode(tiny_model.encoder(8), frames[0, 0])
    assert executor.longest_step_s == 0


async def test_a_gather_window_lets_others_join(tiny_model, frames):
    executor = CodecExecutor(tiny_model, gather_ms=80)
    try:
        first, second = tiny_model.encoder(8), tiny_model.encoder(8)
        await asyncio.gather(executor.encode(first, frames[0, 0]), executor.encode(second, frames[1, 0]))
        early = asyncio.ensure_future(executor.encode(first, frames[0, 1]))
        await asyncio.sleep(0.01)
        assert not early.done()
        await asyncio.gather(early, executor.encode(second, frames[1, 1]))
        assert executor.stats.batches == 2
        # Nobody comes: the window ends by itself.
        assert len(await executor.encode(first, frames[0, 2])) == 8
    finally:
        executor.close()


async def test_those_that_are_behind_go_on_together(tiny_model, frames):
    """A service at its limit must not split into halves that take turns: each would pay for the weights."""
    executor = CodecExecutor(tiny_model)
    try:
        sessions = [tiny_model.encoder(8) for _ in frames]
        halves = [asyncio.ensure_future(encoded(executor, *pair)) for pair in zip(sessions[:4], frames[:4], strict=True)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        halves += [asyncio.ensure_future(encoded(executor, *pair)) for pair in zip(sessions[4:], frames[4:], strict=True)]
        await asyncio.gather(*halves)
        assert executor.stats.largest_batch == 8
        assert executor.stats.batches <= FRAMES + 3
    finally:
        executor.close()


class Witness:
    """Notes what an executor tells."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, int]] = []
        self.frames: list[tuple[str, bool]] = []

    def step_done(self, step, sessions, busy_s):
        assert busy_s > 0
        self.steps.append((step, sessions))

    def frame_done(self, step, latency_s, lateness_s, *, refused):
        assert latency_s > 0 > lateness_s
        self.frames.append((step, refused))


async def test_observers_are_told_of_every_step_and_frame(tiny_model, frames):
    witness = Witness()
    executor = CodecExecutor(tiny_model, observers=(witness,))
    try:
        bad = np.full(1920, np.nan, np.float32)
        steps = [executor.encode(tiny_model.encoder(8), row) for row in (frames[0, 0], bad, frames[1, 0])]
        await asyncio.gather(*steps, return_exceptions=True)
        await executor.reset(tiny_model.encoder(8))
    finally:
        executor.close()
    assert witness.steps == [("encode_batch", 3)]
    assert sorted(refused for _, refused in witness.frames) == [False, False, True]


async def test_nothing_is_known_of_sessions_that_were_retired(executor, tiny_model, frames):
    sessions = [tiny_model.encoder(8) for _ in range(3)]
    await asyncio.gather(*(executor.encode(session, frames[0, 0]) for session in sessions))
    assert executor.known_sessions == 3
    for session in sessions:
        executor.retire(session)
    assert executor.known_sessions == 0
