"""How far two sounds of 24 kHz are apart in what is heard: distances between their spectra, in dB.

Frames of 1024 samples under a Hann window, one every 256. Powers count from 80 dB below the loudest of the first sound upwards,
so that what is silent does not weigh as much as speech.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from codec_core.pcm import CODEC_RATE_HZ

WINDOW_SAMPLES: Final = 1024
HOP_SAMPLES: Final = 256
MEL_BANDS: Final = 80
RANGE_DB: Final = 80.0

Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]


def mel_distance_db(expected: Float32Array, found: Float32Array) -> float:
    """Return the mean absolute difference of 80 mel bands, over bands and frames.

    Args:
        expected: float32 [samples] at 24 kHz.
        found: as many samples. Of less than a frame the distance is 0.

    """
    first, second = _levels_db(*(power_spectra(sound) @ mel_filters().T for sound in (expected, found)))
    return float(np.abs(first - second).mean()) if first.size else 0.0


def log_spectral_distance_db(expected: Float32Array, found: Float32Array) -> float:
    """Return the RMS difference over frequencies, its mean over frames.

    Args:
        expected: float32 [samples] at 24 kHz.
        found: as many samples. Of less than a frame the distance is 0.

    """
    first, second = _levels_db(power_spectra(expected), power_spectra(found))
    return float(np.sqrt(((first - second) ** 2).mean(axis=1)).mean()) if first.size else 0.0


def power_spectra(sound: Float32Array) -> Float64Array:
    """Return the power of every bin of every frame: float32 [samples] -> float64 [frames, 513]."""
    if len(sound) < WINDOW_SAMPLES:
        return np.empty((0, WINDOW_SAMPLES // 2 + 1))
    frames = np.lib.stride_tricks.sliding_window_view(sound, WINDOW_SAMPLES)[::HOP_SAMPLES]
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW_SAMPLES) / WINDOW_SAMPLES)
    return np.asarray(np.abs(np.fft.rfft(frames * window, axis=1)) ** 2)


@cache
def mel_filters() -> Float64Array:
    """Return the triangles of the bands, from 0 to 12 kHz, each with its peak at 1: float64 [MEL_BANDS, 513]."""
    edges_hz = _hz(np.linspace(0, _mel(np.float64(CODEC_RATE_HZ / 2)), MEL_BANDS + 2))
    bins_hz = np.arange(WINDOW_SAMPLES // 2 + 1) * CODEC_RATE_HZ / WINDOW_SAMPLES
    low, peak, high = (edges_hz[start : start + MEL_BANDS, None] for start in range(3))
    return np.maximum(0, np.minimum((bins_hz - low) / (peak - low), (high - bins_hz) / (high - peak)))


def _levels_db(expected: Float64Array, found: Float64Array) -> tuple[Float64Array, Float64Array]:
    floor = max(float(expected.max(initial=0)) * 10 ** (-RANGE_DB / 10), np.finfo(np.float64).tiny)
    first, second = (10 * np.log10(np.maximum(power, floor)) for power in (expected, found))
    return first, second


def _mel(hz: np.float64) -> np.float64:
    return np.float64(2595 * np.log10(1 + hz / 700))


def _hz(mel: Float64Array) -> Float64Array:
    return np.asarray(700 * (10 ** (mel / 2595) - 1))
