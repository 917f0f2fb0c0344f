"""The drift card: how far the codes and the sound of one model are from those of another of the same geometry.

It answers what a weight class costs. Codes are compared on the same audio; sound is compared on the *same* codes, those of the
reference, so that a code that differs does not count twice.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from codec_core.audio_file import AudioReader
from codec_core.clip import decode_clip, encode_clip
from codec_core.compare import SoundComparison, compare_sounds
from codec_core.errors import AudioFileError, SettingError
from codec_core.model import CodecModel, ModelInfo
from codec_core.spectral import log_spectral_distance_db, mel_distance_db

Progress = Callable[[int, int], None]
PREFIX_LEVELS: Final = 8
"""As many levels as Mimi's language models use."""
_COMMON_FACTS: Final = ("levels", "codebook_entries", "frame_samples")


@dataclass(frozen=True)
class SignalDrift:
    """One audio file through both models."""

    name: str
    matches: npt.NDArray[np.bool_]
    """bool [levels, frames]: where the codes are equal."""
    sound: SoundComparison
    """Of the reference's codes, decoded by both."""
    mel_distance_db: float
    log_spectral_distance_db: float


@dataclass(frozen=True)
class DriftCard:
    """A model measured against a reference."""

    reference: ModelInfo
    model: ModelInfo
    signals: list[SignalDrift]

    @cached_property
    def matches(self) -> npt.NDArray[np.bool_]:
        """Where the codes are equal: bool [levels, frames of all signals]."""
        return np.concatenate([signal.matches for signal in self.signals], axis=1)

    @property
    def code_match(self) -> float:
        """Share of all codes that are equal."""
        return float(self.matches.mean())

    @property
    def semantic_match(self) -> float:
        """The same of level 0."""
        return float(self.matches[0].mean())

    def prefix_match(self, levels: int) -> float:
        """Return the same of the first levels."""
        return float(self.matches[:levels].mean())

    @property
    def level_match(self) -> list[float]:
        """The same by level."""
        return [float(row.mean()) for row in self.matches]

    @property
    def first_match(self) -> list[float | None]:
        """By level, the share that is equal of the codes whose residual began equal; None where no residual did.

        Level 0 has its own half of the quantiser. From level 1 on a code that differs leaves another residual, and all later
        levels quantise something else: they say little of their own.
        """
        equal_before = np.logical_and.accumulate(self.matches[1:], axis=0)
        shares: list[float | None] = [*self.level_match[:2]]
        for row, before in zip(self.matches[2:], equal_before, strict=False):
            shares.append(float(row[before].mean()) if before.any() else None)
        return shares

    def fields(self) -> dict[str, Any]:
        """Return the card as plain values, for JSON."""
        return {
            "reference": asdict(self.reference),
            "model": asdict(self.model),
            "code_match": self.code_match,
            "semantic_match": self.semantic_match,
            "prefix_levels": PREFIX_LEVELS,
            "prefix_match": self.prefix_match(PREFIX_LEVELS),
            "level_match": self.level_match,
            "first_match": self.first_match,
            "signals": [_signal_fields(signal) for signal in self.signals],
        }


def measure_drift(reference: CodecModel, model: CodecModel, audio: list[str], progress: Progress | None = None) -> DriftCard:
    """Encode audio by both models, decode the reference's codes by both, and compare.

    Args:
        reference: the model that is right.
        model: the one to measure; of the same geometry and under the same numerics.
        audio: files of any format, rate and channels. At least one.
        progress: called with (files done, files in all).

    Raises:
        SettingError: models that cannot be compared, or no audio.
        AudioFileError: a file that cannot be read, or is too short for a frame.

    """
    for fact in _COMMON_FACTS:
        found, expected = getattr(model.info, fact), getattr(reference.info, fact)
        if found != expected:
            raise SettingError(f"{fact} of {model.info.path}", f"{found}", f"{expected}, as {reference.info.path} has")
    if not audio:
        raise SettingError("audio", "no file", "at least one to encode")
    return DriftCard(reference.info, model.info, list(_signals(reference, model, audio, progress)))


def _signals(reference: CodecModel, model: CodecModel, audio: list[str], progress: Progress | None) -> Iterator[SignalDrift]:
    for done, path in enumerate(audio, start=1):
        pcm = _read(path, reference.info.frame_samples)
        codes, other = (encode_clip(one, pcm, reference.info.levels) for one in (reference, model))
        sound, moved = (decode_clip(one, codes) for one in (reference, model))
        yield SignalDrift(
            name=Path(path).name,
            matches=np.equal(codes, other),
            sound=compare_sounds(sound, moved),
            mel_distance_db=mel_distance_db(sound, moved),
            log_spectral_distance_db=log_spectral_distance_db(sound, moved),
        )
        if progress is not None:
            progress(done, len(audio))


def _read(path: str, frame_samples: int) -> npt.NDArray[np.float32]:
    with AudioReader(os.fspath(path)) as reader:
        pcm = np.concatenate([np.zeros(0, np.float32), *reader.pcm()])
    if len(pcm) < frame_samples:
        raise AudioFileError(path, f"{len(pcm)} samples at 24 kHz", f"at least one frame of {frame_samples}")
    return pcm


def _signal_fields(signal: SignalDrift) -> dict[str, Any]:
    return {
        "name": signal.name,
        "frames": signal.matches.shape[1],
        "code_match": float(signal.matches.mean()),
        "semantic_match": float(signal.matches[0].mean()),
        "level_match": [float(row.mean()) for row in signal.matches],
        # JSON has no infinity: null stands for no error at all.
        "snr_db": None if signal.sound.bit_exact else signal.sound.snr_db,
        "psnr_db": None if signal.sound.bit_exact else signal.sound.psnr_db,
        "mel_distance_db": signal.mel_distance_db,
        "log_spectral_distance_db": signal.log_spectral_distance_db,
    }
