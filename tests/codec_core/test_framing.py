from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codec_core.errors import InputShapeError, InputTypeError, SettingError
from codec_core.framing import FrameAccumulator


@given(st.integers(1, 9), st.lists(st.integers(0, 25), max_size=20))
def test_frames_are_the_stream_cut_evenly(frame: int, lengths: list[int]) -> None:
    stream = np.arange(sum(lengths), dtype=np.float32) + 1
    accumulator = FrameAccumulator(frame)
    frames = []
    taken = 0
    for length in lengths:
        frames.append(accumulator.push(stream[taken : taken + length]))
        taken += length
        assert accumulator.pending_samples == taken % frame
        assert np.array_equal(accumulator.pending(), stream[taken - taken % frame : taken])
    whole = np.concatenate([*frames, np.empty((0, frame), np.float32)])
    assert np.array_equal(whole.reshape(-1), stream[: taken - taken % frame])
    tail = accumulator.flush()
    assert tail.shape == (1 if taken % frame else 0, frame)
    padded = np.zeros(tail.size, np.float32)
    padded[: taken % frame] = stream[taken - taken % frame :]
    assert np.array_equal(tail.reshape(-1), padded)
    assert accumulator.pending_samples == 0
    assert accumulator.flush().shape == (0, frame)


@pytest.mark.parametrize("chunk", [1, 959, 1919, 1920, 1921, 4099, 19200])
def test_awkward_chunks(chunk: int) -> None:
    stream = np.random.default_rng(chunk).standard_normal(19_200).astype(np.float32)
    accumulator = FrameAccumulator(1920)
    frames = np.concatenate([accumulator.push(stream[at : at + chunk]) for at in range(0, len(stream), chunk)])
    assert np.array_equal(frames.reshape(-1), stream)


def test_frames_do_not_alias_the_callers_memory() -> None:
    chunk = np.ones(8, np.float32)
    accumulator = FrameAccumulator(4)
    frames = accumulator.push(chunk)
    chunk[:] = 5
    assert frames.tolist() == [[1, 1, 1, 1]] * 2


def test_a_snapshot_continues_the_stream() -> None:
    stream = np.arange(10, dtype=np.float32)
    first, second = FrameAccumulator(4), FrameAccumulator(4)
    first.push(stream[:7])
    second.push(np.full(2, 9, np.float32))
    second.restore(first.pending())
    assert second.pending_samples == 3
    assert np.array_equal(second.push(stream[7:]), first.push(stream[7:]))
    second.restore(np.zeros(0, np.float32))
    assert second.pending_samples == 0


def test_clear_forgets() -> None:
    accumulator = FrameAccumulator(4)
    accumulator.push(np.ones(3, np.float32))
    accumulator.clear()
    assert accumulator.flush().shape == (0, 4)


def test_refusals_change_nothing() -> None:
    accumulator = FrameAccumulator(4)
    accumulator.push(np.ones(3, np.float32))
    with pytest.raises(InputTypeError):
        accumulator.push(np.ones(3, np.float64))
    with pytest.raises(InputShapeError):
        accumulator.push(np.ones((2, 3), np.float32))
    with pytest.raises(InputShapeError, match="pending: found 4 samples, expected less than a frame of 4"):
        accumulator.restore(np.ones(4, np.float32))
    with pytest.raises(InputTypeError):
        accumulator.restore(np.ones(1, np.int16))
    assert accumulator.pending().tolist() == [1, 1, 1]
    with pytest.raises(SettingError):
        FrameAccumulator(0)
