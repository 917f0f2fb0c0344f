from __future__ import annotations

import numpy as np
import pytest

from codec_core.spectral import MEL_BANDS, log_spectral_distance_db, mel_distance_db, mel_filters, power_spectra


def noise(rng: np.random.Generator, samples: int = 24000) -> np.ndarray:
    return (rng.standard_normal(samples) * 0.1).astype(np.float32)


@pytest.mark.parametrize("distance", [mel_distance_db, log_spectral_distance_db])
def test_a_gain_is_its_decibels(distance, rng: np.random.Generator) -> None:
    sound = noise(rng)
    assert distance(sound, sound) == 0
    assert distance(sound, sound * np.float32(2)) == pytest.approx(20 * np.log10(2), abs=1e-4)
    assert distance(sound * np.float32(2), sound) == pytest.approx(20 * np.log10(2), abs=1e-4)


@pytest.mark.parametrize("distance", [mel_distance_db, log_spectral_distance_db])
def test_silence_and_less_than_a_frame(distance, rng: np.random.Generator) -> None:
    silence = np.zeros(5000, np.float32)
    assert distance(silence, silence) == 0
    assert distance(noise(rng, 1023), noise(rng, 1023)) == 0


@pytest.mark.parametrize("distance", [mel_distance_db, log_spectral_distance_db])
def test_what_lies_below_the_range_does_not_count(distance, rng: np.random.Generator) -> None:
    sound = np.concatenate([noise(rng), np.zeros(24000, np.float32)])
    moved = sound.copy()
    moved[26000:] = noise(rng, 22000) * 1e-7
    assert distance(sound, moved) == 0


def test_a_tone_is_in_its_bin() -> None:
    tone = np.cos(2 * np.pi * 100 * np.arange(4096) / 1024).astype(np.float32)
    spectra = power_spectra(tone)
    assert spectra.shape == (13, 513)
    assert (spectra.argmax(axis=1) == 100).all()
    # Half the sum of the window, squared.
    assert spectra[:, 100] == pytest.approx(256.0**2, rel=1e-5)


def test_bands_cover_the_spectrum_without_a_hole() -> None:
    filters = mel_filters()
    assert filters.shape == (MEL_BANDS, 513)
    assert (filters >= 0).all()
    assert (filters <= 1).all()
    assert (filters.sum(axis=1) > 0).all()
    # Neighbouring triangles add up to one between the first peak and the last.
    peaks = filters.argmax(axis=1)
    assert filters.sum(axis=0)[peaks[0] + 1 : peaks[-1]] == pytest.approx(1)
