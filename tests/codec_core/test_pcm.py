from __future__ import annotations

import numpy as np
import pytest
import soxr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from codec_core.errors import InputShapeError, InputTypeError, NonFiniteInputError, SettingError
from codec_core.pcm import PcmIntake, require_finite, to_float32, to_int16, to_mono


def test_int16_is_divided_by_32768() -> None:
    pcm = np.array([-32768, -1, 0, 1, 32767], np.int16)
    assert to_float32(pcm).tolist() == [-1.0, -1 / 32768, 0.0, 1 / 32768, 32767 / 32768]


def test_every_int16_survives_the_round_trip() -> None:
    every = np.arange(-32768, 32768).astype(np.int16)
    assert np.array_equal(to_int16(to_float32(every)), every)


def test_int16_output_is_clamped_and_rounded_to_nearest_even() -> None:
    pcm = np.array([1.0, -1.0, 1.8, -7e30, 0.5 / 32768, 1.5 / 32768, -0.5 / 32768, 0.99999], np.float32)
    assert to_int16(pcm).tolist() == [32767, -32768, 32767, -32768, 0, 2, 0, 32767]


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.int64, np.float16, np.complex64, np.dtype(">i2"), object])
def test_other_element_types_are_refused(dtype: type) -> None:
    with pytest.raises(InputTypeError, match=r"pcm: found .*, expected int16 or float32 or float64"):
        to_float32(np.zeros(4, dtype))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_the_first_sample_that_is_not_finite_is_named(bad: float) -> None:
    pcm = np.zeros(100, np.float32)
    pcm[[17, 40]] = bad
    with pytest.raises(NonFiniteInputError, match=r"sample 1017: found -?(nan|inf), expected a finite number"):
        require_finite(pcm, 1000)
    stereo = np.zeros((100, 2), np.float32)
    stereo[3, 1] = bad
    with pytest.raises(NonFiniteInputError, match="sample 3, channel 1"):
        require_finite(stereo)


def test_a_float64_past_float32_is_not_finite() -> None:
    with pytest.raises(NonFiniteInputError, match="sample 1: found inf"):
        to_float32(np.array([0.0, 1e300]))


def test_channels_are_averaged() -> None:
    pcm = np.array([[0.5, -0.25, 0.5], [1, 1, 1]], np.float32)
    assert to_mono(pcm).tolist() == [0.25, 1.0]
    assert to_mono(pcm[:, :1]).tolist() == [0.5, 1.0]
    assert to_mono(pcm[:, 0]) is not None


def chunks_of(pcm: np.ndarray, cuts: list[int]) -> list[np.ndarray]:
    return np.split(pcm, sorted(cut % (len(pcm) + 1) for cut in cuts))


@given(
    cuts=st.lists(st.integers(0, 10_000), max_size=12),
    rate=st.sampled_from([8000, 11025, 16000, 22050, 24000, 44100, 48000, 96000, 192000]),
    dtype=st.sampled_from(["int16", "float32", "float64"]),
    channels=st.integers(1, 3),
)
def test_cutting_does_not_show(cuts: list[int], rate: int, dtype: str, channels: int) -> None:
    rng = np.random.default_rng(5)
    pcm = (rng.standard_normal((3001, channels)) * 3000).astype(np.int16)
    if dtype != "int16":
        pcm = (pcm / 32768).astype(dtype)
    intake = PcmIntake(rate, channels, dtype)
    pieces = [intake.push(chunk) for chunk in chunks_of(pcm, cuts)] + [intake.flush()]
    found = np.concatenate(pieces)
    mono = to_mono(to_float32(pcm))
    assert found.dtype == np.float32
    assert np.array_equal(found, mono if rate == 24000 else soxr.resample(mono, rate, 24000))


@given(npst.arrays(np.float32, st.integers(0, 50), elements=st.floats(-2, 2, width=32)))
def test_24_khz_passes_through(pcm: np.ndarray) -> None:
    intake = PcmIntake(24000)
    assert np.array_equal(intake.push(pcm), pcm)
    assert intake.position_samples == len(pcm)
    assert intake.flush().size == 0


def test_a_tone_keeps_its_pitch_and_length() -> None:
    for rate in (8000, 44100, 96000):
        pcm = np.sin(2 * np.pi * 440 * np.arange(rate) / rate).astype(np.float32)
        intake = PcmIntake(rate)
        found = np.concatenate([intake.push(pcm), intake.flush()])
        assert len(found) == 24000
        wanted = np.sin(2 * np.pi * 440 * np.arange(24000) / 24000)
        assert np.abs(found - wanted)[500:-500].max() < 2e-4


def test_after_flush_a_new_stream_begins() -> None:
    pcm = np.random.default_rng(2).standard_normal(4000).astype(np.float32)
    intake = PcmIntake(16000)
    first = np.concatenate([intake.push(pcm), intake.flush()])
    assert intake.position_samples == 0
    second = np.concatenate([intake.push(pcm), intake.flush()])
    assert np.array_equal(first, second)
    assert PcmIntake(16000).flush().size == 0


def test_a_refused_chunk_leaves_the_stream_as_it_was() -> None:
    pcm = np.random.default_rng(3).standard_normal(8000).astype(np.float32)
    bad = pcm.copy()
    bad[7] = np.nan
    disturbed, plain = PcmIntake(16000), PcmIntake(16000)
    found = [disturbed.push(pcm[:5000])]
    with pytest.raises(NonFiniteInputError, match="sample 5007"):
        disturbed.push(bad)
    with pytest.raises(InputTypeError):
        disturbed.push(pcm.astype(np.float64))
    with pytest.raises(InputShapeError):
        disturbed.push(np.stack([pcm, pcm], axis=1))
    found += [disturbed.push(pcm[5000:]), disturbed.flush()]
    wanted = [plain.push(pcm), plain.flush()]
    assert np.array_equal(np.concatenate(found), np.concatenate(wanted))


def test_a_mean_that_overflows_is_refused() -> None:
    most = np.full((1, 2), np.finfo(np.float32).max)
    with pytest.raises(NonFiniteInputError):
        PcmIntake(24000, 2).push(most)


@pytest.mark.parametrize(
    ("arguments", "subject"),
    [
        ((0,), "sample_rate_hz"),
        ((10**7,), "sample_rate_hz"),
        ((8000, 0), "channels"),
        ((8000, 65), "channels"),
        ((8000, 1, "u8"), "dtype"),
    ],
)
def test_settings_outside_their_range(arguments: tuple[int, ...], subject: str) -> None:
    with pytest.raises(SettingError) as caught:
        PcmIntake(*arguments)
    assert caught.value.subject == subject


def test_flat_interleaved_stereo_is_refused() -> None:
    with pytest.raises(InputShapeError, match=r"expected \[n, 2\]"):
        PcmIntake(48000, 2, "int16").push(np.zeros(10, np.int16))
