"""Analytic latents: what a frame is described by before anything is trained.

Per 80 ms frame the principal components of four slices of a log-mel spectrum (the envelope) and of the low-frequency waveform
(pitch and phase). An encoder that is first made to give these, and a decoder that is first trained from them, are two easy
problems in place of one hard one.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

FRAME_SAMPLES: Final = 1920
WINDOW_SAMPLES: Final = 720
BANDS: Final = 24
SLICES: Final = 4
ENVELOPE_WIDTH: Final = 56
LOW_WIDTH: Final = 40
SCALE: Final = 8.0
Array = npt.NDArray[np.float32]
Basis = dict[str, Array]


def _mel_filters(bins: int = 1024, low_hz: float = 50.0, high_hz: float = 11_000.0) -> Array:
    hz = np.linspace(0, 12_000, bins // 2 + 1)
    low, high = (2595 * np.log10(1 + value / 700) for value in (low_hz, high_hz))
    edges = 700 * (10 ** (np.linspace(low, high, BANDS + 2) / 2595) - 1)
    rows = [
        np.clip(np.minimum((hz - a) / (b - a), (c - hz) / (c - b)), 0, None)
        for a, b, c in zip(edges, edges[1:], edges[2:], strict=False)
    ]
    filters = np.stack(rows)
    return (filters / filters.sum(1, keepdims=True)).astype(np.float32)


_FILTERS: Final = _mel_filters()
_HANN: Final = np.hanning(WINDOW_SAMPLES + 2)[1:-1].astype(np.float32)
_BAND_WEIGHTS: Final = np.where(np.arange(BANDS) < 18, 1, 0.7).astype(np.float32)


def envelope(sound: Array) -> Array:
    """Levels in dB: float32 [samples], whole frames -> [frames, SLICES * BANDS]."""
    hop = FRAME_SAMPLES // SLICES
    padded = np.concatenate([np.zeros(WINDOW_SAMPLES - hop, np.float32), sound])
    slices = np.lib.stride_tricks.sliding_window_view(padded, WINDOW_SAMPLES)[::hop]
    levels = []
    for start in range(0, len(slices), 20_000):
        power = np.abs(np.fft.rfft(slices[start : start + 20_000] * _HANN, 1024)) ** 2 / np.sum(_HANN**2)
        levels.append(10 * np.log10(power @ _FILTERS.T + 3e-8))
    return (np.concatenate(levels) * _BAND_WEIGHTS).astype(np.float32).reshape(-1, SLICES * BANDS)


def _blocks(sound: Array) -> Array:
    return sound[: len(sound) // FRAME_SAMPLES * FRAME_SAMPLES].reshape(-1, FRAME_SAMPLES)


def _compressed(blocks: Array) -> Array:
    """Make loud frames count little more than soft ones."""
    return blocks / (np.sqrt((blocks**2).mean(1, keepdims=True)) + 0.004) ** 0.65


def fit_basis(sounds: list[Array]) -> Basis:
    """Find the components on float32 [samples] each."""
    levels = np.concatenate([envelope(sound) for sound in sounds])
    mean = levels.mean(0)
    envelope_basis = _leading(np.cov((levels - mean).T), ENVELOPE_WIDTH)
    blocks = np.concatenate([_blocks(sound) for sound in sounds])
    blocks = _compressed(blocks[np.sqrt((blocks**2).mean(1)) > 0.01])
    hz = np.fft.rfftfreq(4 * FRAME_SAMPLES, 1 / 24_000)
    band = 1 / (1 + (hz / 420) ** 12) * (1 - 1 / (1 + (hz / 60) ** 6))
    low = np.fft.irfft(np.fft.rfft(blocks, 4 * FRAME_SAMPLES) * band, 4 * FRAME_SAMPLES)[:, :FRAME_SAMPLES]
    low_basis = _leading(low.T @ low / len(low), LOW_WIDTH)
    projected = np.concatenate([_compressed(_blocks(sound)) @ low_basis for sound in sounds[:8]])
    scale = np.float32(7.5 / np.sqrt((projected**2).mean()))
    return {"mean": mean, "envelope": envelope_basis, "low": low_basis * scale}


def _leading(covariance: npt.NDArray[np.float64], width: int) -> Array:
    return np.linalg.eigh(covariance)[1][:, ::-1][:, :width].astype(np.float32)


def analytic_latents(sound: Array, basis: Basis) -> Array:
    """float32 [samples], whole frames -> [frames, ENVELOPE_WIDTH + LOW_WIDTH]; a distance of 1 is 8 dB over the frame."""
    described = (envelope(sound) - basis["mean"]) @ basis["envelope"]
    return (np.concatenate([described, _compressed(_blocks(sound)) @ basis["low"]], 1) / SCALE).astype(np.float32)
