"""Audio files of all kinds, good and bad."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import soundfile

FORMATS = ("wav", "flac", "ogg", "mp3")
RATES_HZ = (8000, 11025, 16000, 22050, 24000, 32000, 44100, 48000)
BAD_KINDS = ("zero bytes", "text", "no samples", "short wav", "short flac", "nan", "infinity", "too loud", "cut header")


def sound(samples: int, channels: int, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    tone = 0.3 * np.sin(np.arange(samples) * generator.uniform(0.01, 0.2))
    return (tone[:, None] + 0.05 * generator.standard_normal((samples, channels))).astype(np.float32)


def write_bad(path: Path, kind: str, seed: int) -> None:
    """A file of that kind. All have a suffix of audio."""
    values = sound(6000, 1, seed)
    if kind in ("nan", "infinity", "too loud"):
        values[4000] = {"nan": np.nan, "infinity": np.inf, "too loud": 3e38}[kind]
        soundfile.write(path, values, 24000, subtype="FLOAT")
    elif kind == "no samples":
        soundfile.write(path, values[:0], 24000)
    elif kind == "zero bytes":
        path.write_bytes(b"")
    elif kind == "text":
        path.write_text("This is not audio.\n" * 50)
    else:
        soundfile.write(path, values, 16000, format="FLAC" if "flac" in kind else "WAV")
        data = path.read_bytes()
        path.write_bytes(data[:20] if kind == "cut header" else data[: len(data) * 2 // 3])
