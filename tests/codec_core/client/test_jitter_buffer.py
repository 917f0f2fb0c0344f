from __future__ import annotations

import numpy as np
import pytest

from codec_core.client.jitter_buffer import JitterBuffer

RATE_HZ = 24_000
BLOCK = 480
FRAME = 1920


def tone(samples: int, first: int = 0) -> np.ndarray:
    return np.sin(2 * np.pi * 200 * (np.arange(samples) + first) / RATE_HZ).astype(np.float32)


def largest_step(pcm: np.ndarray) -> float:
    return float(np.abs(np.diff(pcm)).max())


def test_what_is_pushed_is_heard_whole_and_in_order():
    buffer = JitterBuffer(RATE_HZ, target_ms=80)
    sound = tone(10 * FRAME)
    heard = []
    for start in range(0, len(sound), FRAME):
        buffer.push(sound[start : start + FRAME])
        heard += [buffer.pull(BLOCK) for _ in range(FRAME // BLOCK - (start == 0))]
    buffer.end()
    while not buffer.is_drained:
        heard.append(buffer.pull(BLOCK))
    out = np.concatenate(heard)[: len(sound)]
    assert np.array_equal(out[200:-200], sound[200:-200])
    assert (buffer.underruns, buffer.dropped_samples) == (0, 0)


def test_nothing_is_heard_before_enough_waits():
    buffer = JitterBuffer(RATE_HZ, target_ms=160)
    buffer.push(tone(FRAME))
    assert not buffer.pull(BLOCK).any()
    assert buffer.waiting_ms == 80
    buffer.push(tone(FRAME, FRAME))
    assert buffer.pull(BLOCK).any()


@pytest.mark.parametrize("late_frames", [1, 6])
def test_a_stall_makes_no_click(late_frames):
    """The steepest step of what is heard is the sound's own."""
    buffer = JitterBuffer(RATE_HZ, target_ms=160)
    heard, pushed = [], 0
    for tick in range(40):
        if tick < 15 or tick >= 15 + late_frames:
            for _ in range(1 + (late_frames if tick == 15 + late_frames else 0)):
                buffer.push(tone(FRAME, pushed))
                pushed += FRAME
        heard += [buffer.pull(BLOCK) for _ in range(4)]
    assert buffer.underruns == (late_frames > 1)
    assert largest_step(np.concatenate(heard)) < 1.2 * largest_step(tone(FRAME))


def test_what_is_too_much_is_dropped_and_counted():
    buffer = JitterBuffer(RATE_HZ, most_ms=400)
    for index in range(10):
        buffer.push(np.full(FRAME, index, np.float32))
        assert buffer.waiting_ms <= 400
    assert buffer.dropped_samples == 5 * FRAME
    assert set(buffer.pull(5 * FRAME)[200:].tolist()) == {5.0, 6.0, 7.0, 8.0, 9.0}


def test_a_short_sound_is_heard_once_it_is_known_to_be_all():
    buffer = JitterBuffer(RATE_HZ)
    buffer.push(tone(100))
    assert not buffer.pull(BLOCK).any()
    buffer.end()
    assert buffer.pull(BLOCK).any()
    assert buffer.is_drained
    assert buffer.underruns == 0
