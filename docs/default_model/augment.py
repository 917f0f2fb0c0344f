"""Few voices must stand in for many: pitch and speed, colour, rooms near and far, level, noise, telephone bands, polarity."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import soxr

RATE_HZ = 24_000
Sound = npt.NDArray[np.float32]


def augment(sound: Sound, rng: np.random.Generator) -> Sound:
    """Return a variant of a sound, float32 [samples] at 24 kHz -> another number of samples, within full scale."""
    if rng.random() < 0.85:
        sound = soxr.resample(sound, RATE_HZ, RATE_HZ / rng.uniform(0.85, 1.2), quality="MQ")
    samples = len(sound)
    size = 1 << int(np.ceil(np.log2(samples + 12_000)))
    spectrum = np.fft.rfft(sound, size) * _colour(np.fft.rfftfreq(size, 1 / RATE_HZ), rng)
    distance = rng.random()
    if distance < 0.35:
        spectrum = spectrum * np.fft.rfft(_room(rng, far=distance < 0.12), size)
    coloured = np.fft.irfft(spectrum, size)[:samples].astype(np.float32)
    coloured *= np.float32(10 ** (-rng.uniform(0.5, 24) / 20) / max(1e-4, float(np.abs(coloured).max())))
    if rng.random() < 0.5:
        coloured = coloured + _noise(coloured, rng)
    return np.clip(coloured if rng.random() < 0.5 else -coloured, -1, 1).astype(np.float32)


def _colour(hz: npt.NDArray[np.float64], rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Tilt, ripple, high-pass, and sometimes the band of a telephone."""
    tilt_db = rng.uniform(-2.5, 2.5) if rng.random() < 0.7 else 0.0
    gain = 10 ** (tilt_db * np.log2((hz + 150) / 1000) / 20)
    if rng.random() < 0.5:
        points = np.linspace(np.log2(60), np.log2(12_060), 9)
        gain = gain * 10 ** (np.interp(np.log2(hz + 60), points, rng.normal(0, 2.5, 9)) / 20)
    if rng.random() < 0.3:
        gain = gain / np.sqrt(1 + (rng.uniform(60, 130) / (hz + 1)) ** 4)
    if rng.random() < 0.06:
        gain = gain / np.sqrt(1 + (hz / rng.uniform(3_200, 7_000)) ** 16)
    return gain


def _room(rng: np.random.Generator, *, far: bool) -> npt.NDArray[np.float64]:
    """Impulse response: the direct sound and a decaying tail, for a far microphone nearly as strong and duller."""
    samples = int(rng.uniform(0.08, 0.45 if far else 0.3) * RATE_HZ)
    tail = rng.normal(0, 1, samples) * np.exp(-6.9 * np.arange(samples) / samples)
    if far:
        tail = np.convolve(tail, np.ones(4) / 4, "same")
    tail *= 10 ** (rng.uniform(-10, -2) / 20 if far else rng.uniform(-22, -10) / 20) / np.sqrt((tail**2).sum())
    tail[0] += 1
    return tail


def _noise(sound: Sound, rng: np.random.Generator) -> Sound:
    """White, dull or humming noise, mostly faint, now and then as loud as in a street."""
    noise = rng.normal(0, 1, len(sound))
    kind = rng.random()
    if kind < 0.6:
        noise = np.convolve(noise, np.ones(12) / 12, "same") + 0.15 * noise
    if kind < 0.12:
        phase = 2 * np.pi * rng.choice([50.0, 60.0, 100.0, 120.0]) * np.arange(len(sound)) / RATE_HZ
        noise = noise * 0.3 + np.sin(phase) + 0.4 * np.sin(3 * phase)
    ratio_db = rng.uniform(8, 25) if rng.random() < 0.25 else rng.uniform(25, 45)
    level = np.sqrt((sound**2).mean() / ((noise**2).mean() + 1e-9)) * 10 ** (-ratio_db / 20)
    return (noise * level).astype(np.float32)


def trim(sound: Sound) -> Sound:
    """Cut silence from both ends, all but 50 and 100 ms."""
    loud = np.flatnonzero(np.abs(sound) > 0.01 * np.abs(sound).max())
    return sound[max(0, loud[0] - 1200) : loud[-1] + 2400] if len(loud) else sound[:0]
