from __future__ import annotations

import numpy as np
import pytest
import soxr

from server.resampling import HISTORY_MS, Resampler, steady_delay_samples

RATES = [8_000, 11_025, 12_001, 16_000, 22_050, 44_099, 44_100, 48_000, 96_000]


@pytest.fixture
def noise(rng: np.random.Generator) -> np.ndarray:
    return (0.2 * rng.standard_normal(24_000 * 5)).astype(np.float32)


def pieces(noise: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    return np.split(noise, np.sort(rng.integers(0, len(noise), 60)))


@pytest.mark.parametrize("rate", RATES)
def test_it_is_soxr_for_any_chunks(noise, rng, rate):
    resampler = Resampler(rate, 24_000)
    made = np.concatenate([*(resampler.push(piece) for piece in pieces(noise, rng)), resampler.flush()])
    whole = soxr.ResampleStream(rate, 24_000, 1, dtype="float32")
    assert np.array_equal(made, whole.resample_chunk(noise, last=True))


def test_equal_rates_pass_through(noise):
    resampler = Resampler(24_000, 24_000)
    assert resampler.push(noise) is noise
    resampler.restore(resampler.state())
    assert len(resampler.flush()) == 0
    assert steady_delay_samples(24_000, 24_000) == 0


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("inward", [True, False])
def test_another_one_goes_on_at_the_same_sample(noise, rng, rate, inward):
    rates = (rate, 24_000) if inward else (24_000, rate)
    whole = Resampler(*rates)
    expected = np.concatenate([whole.push(noise), whole.flush()])
    moving, made = Resampler(*rates), []
    for piece in pieces(noise, rng):
        state = moving.state()
        assert len(state.heard) <= 2 * rates[0] * HISTORY_MS // 1000 + max(rates)
        moving = Resampler(*rates)
        moving.restore(state)
        made.append(moving.push(piece))
    made = np.concatenate([*made, moving.flush()])
    assert len(made) == len(expected)
    assert np.abs(made - expected).max() < 1e-4


def test_one_that_has_heard_all_goes_on_bit_for_bit(noise):
    first, second, whole = (Resampler(16_000, 24_000) for _ in range(3))
    made = [first.push(noise[:5000])]
    second.restore(first.state())
    made += [second.push(noise[5000:9000]), second.flush(), second.push(noise[:3000]), second.flush()]
    expected = [whole.push(noise[:9000]), whole.flush(), whole.push(noise[:3000]), whole.flush()]
    assert np.array_equal(np.concatenate(made), np.concatenate(expected))


@pytest.mark.parametrize("rate", RATES)
def test_what_is_taken_after_the_delay_is_always_ready(noise, rate):
    delay, resampler, pushed = steady_delay_samples(24_000, rate), Resampler(24_000, rate), 0
    for start in range(0, len(noise), 1920):
        frame = noise[start : start + 1920]
        pushed += len(frame)
        due = pushed * rate // 24_000 - delay - resampler.taken_samples
        assert len(resampler.push(frame, due)) == max(0, due)
    assert delay < rate // 5
