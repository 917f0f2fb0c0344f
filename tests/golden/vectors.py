"""Reading of the golden vectors, and the measures they are compared by."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import soundfile

FOLDER = Path(__file__).parent / "vectors"
SIGNALS = ("tone440", "torture3s", "silence", "impulse", "odd_len", "dc_half", "speech10s", "speech30s")
WITH_TAIL = ("tone440", "torture3s", "odd_len")


def signal(name: str) -> np.ndarray:
    """int16 [samples]"""
    samples, rate_hz = soundfile.read(FOLDER / "signals" / f"{name}.wav", dtype="int16")
    assert rate_hz == 24000
    return samples


def vectors(name: str) -> dict[str, np.ndarray]:
    with np.load(FOLDER / f"{name}.npz") as file:
        return dict(file)


def snr_db(reference: np.ndarray, found: np.ndarray) -> float:
    wide = reference.astype(np.float64)
    error = wide - found
    return float(10 * np.log10((wide**2).sum() / max((error**2).sum(), 1e-300)))


def relative_rms(reference: np.ndarray, found: np.ndarray) -> float:
    wide = reference.astype(np.float64)
    return float(np.sqrt(((wide - found) ** 2).sum() / (wide**2).sum()))


def first_difference(expected: np.ndarray, found: np.ndarray) -> str:
    """For codes [levels, frames]: where the first differing frame differs first."""
    frame, level = np.argwhere((expected != found).T)[0]
    return f"frame {frame}, level {level}: expected {expected[level, frame]}, found {found[level, frame]}"
