"""Audio that no two sessions share, and the codes that the library makes of it."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import soundfile

from codec_core import CodecModel
from codec_core.pcm import to_float32

FRAME_SAMPLES: Final = 1920
RUN_FRAMES: Final = 25
"""Frames that a session takes from the bank one after another, before it jumps."""
_SIGNALS: Final = Path(__file__).parents[1] / "golden" / "vectors" / "signals"
_NAMES: Final = ("speech30s", "speech10s", "torture3s", "sample_2")

Codes = npt.NDArray[np.uint16]


def audio_bank() -> npt.NDArray[np.int16]:
    """Return frames of speech and worse, int16 [n, 1920]; sessions are put together of these, so that memory stays small."""
    pieces = []
    for name in _NAMES:
        samples, _ = soundfile.read(_SIGNALS / f"{name}.wav", dtype="int16")
        pieces.append(samples[: len(samples) // FRAME_SAMPLES * FRAME_SAMPLES].reshape(-1, FRAME_SAMPLES))
    return np.concatenate(pieces).astype("<i2")


def frame_choice(session: int, frames: int, bank_frames: int, seed: int) -> npt.NDArray[np.int32]:
    """Return which frames of the bank a session sends: runs that begin anywhere."""
    rng = np.random.default_rng([seed, session])
    starts = rng.integers(0, bank_frames, -(-frames // RUN_FRAMES))
    runs = starts[:, None] + np.arange(RUN_FRAMES)
    return np.asarray(runs.reshape(-1)[:frames] % bank_frames, np.int32)


def expected_codes(
    model: CodecModel,
    levels: int,
    choices: npt.NDArray[np.int32],
    bank: npt.NDArray[np.int16],
    progress: Callable[[int, int], None],
) -> Codes:
    """Encode every session by the library.

    Args:
        model: the model that the service runs.
        levels: of every frame.
        choices: frames of the bank, [sessions, frames].
        bank: the audio.
        progress: called with frames done and frames in all.

    Returns:
        [frames, sessions, levels].

    """
    cached = _cache_path(model, levels, choices, bank)
    if cached.exists():
        return np.asarray(np.load(cached), np.uint16)
    encoders = [model.encoder(levels) for _ in choices]
    sound = to_float32(bank)
    codes = np.empty((choices.shape[1], len(encoders), levels), np.uint16)
    for frame in range(choices.shape[1]):
        codes[frame] = model.encode_batch(encoders, sound[choices[:, frame]])
        progress(frame + 1, choices.shape[1])
    cached.parent.mkdir(exist_ok=True)
    np.save(cached, codes)
    return codes


def _cache_path(model: CodecModel, levels: int, choices: npt.NDArray[np.int32], bank: npt.NDArray[np.int16]) -> Path:
    digest = hashlib.sha256(f"{model.info.sha256} {model.info.numerics} {levels} {choices.shape}".encode())
    digest.update(choices.tobytes())
    digest.update(bank.tobytes())
    return Path(tempfile.gettempdir()) / "mimi-bench-codes" / f"{digest.hexdigest()[:32]}.npy"
