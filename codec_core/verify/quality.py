"""The quality card: how near a model's speech is to what it was made of, by number of levels.

Clips are encoded once with all levels and decoded with fewer. Each clip belongs to a source, the folder it lies in, so that a
voice the model does badly shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from codec_core.audio_file import AudioReader
from codec_core.clip import decode_clip, encode_clip
from codec_core.errors import AudioFileError, SettingError
from codec_core.model import CodecModel, ModelInfo
from codec_core.pcm import CODEC_RATE_HZ
from codec_core.spectral import mel_distance_db
from codec_core.verify.speech_measures import Recogniser, pesq_wideband, require_measures, stoi, word_errors

Progress = Callable[[int, int], None]
SUFFIXES: Final = (".wav", ".flac", ".ogg", ".mp3", ".opus")
LEAST_SAMPLES: Final = CODEC_RATE_HZ


@dataclass(frozen=True)
class ClipQuality:
    """One clip at one number of levels."""

    source: str
    """Name of the folder it lies in."""
    name: str
    levels: int
    stoi: float
    pesq: float | None
    """None: PESQ found no speech."""
    mel_distance_db: float


@dataclass(frozen=True)
class WordAgreement:
    """What the recogniser hears in decoded speech, against what it hears in the original."""

    levels: int
    words: int
    """In the originals."""
    errors: int

    @property
    def share(self) -> float:
        """Share of the original's words that are heard again, at least 0."""
        return max(0.0, 1 - self.errors / self.words) if self.words else 1.0


@dataclass(frozen=True)
class LevelQuality:
    """Means over clips."""

    levels: int
    kbit_s: float
    stoi: float
    worst_clip_stoi: float
    pesq: float | None
    mel_distance_db: float
    word_agreement: float | None
    """None: no clips were given to the recogniser."""


@dataclass(frozen=True)
class QualityCard:
    """A model's quality on some speech."""

    model: ModelInfo
    clips: list[ClipQuality]
    words: list[WordAgreement]

    @property
    def levels(self) -> list[int]:
        """The numbers of levels that were measured, fewest first."""
        return sorted({clip.levels for clip in self.clips})

    @property
    def sources(self) -> list[str]:
        """The folders, as they came."""
        return list(dict.fromkeys(clip.source for clip in self.clips))

    def source_stoi(self, source: str, levels: int) -> float:
        """Return the mean STOI of a source."""
        return float(np.mean([clip.stoi for clip in self.clips if (clip.source, clip.levels) == (source, levels)]))

    def by_level(self) -> list[LevelQuality]:
        """Return the means, fewest levels first."""
        return [self._at(levels) for levels in self.levels]

    def _at(self, levels: int) -> LevelQuality:
        clips = [clip for clip in self.clips if clip.levels == levels]
        judged = [clip.pesq for clip in clips if clip.pesq is not None]
        agreements = [agreement.share for agreement in self.words if agreement.levels == levels]
        bits_a_level = float(np.log2(self.model.codebook_entries))
        return LevelQuality(
            levels=levels,
            kbit_s=levels * bits_a_level * self.model.frame_rate_hz / 1000,
            stoi=float(np.mean([clip.stoi for clip in clips])),
            worst_clip_stoi=min(clip.stoi for clip in clips),
            pesq=float(np.mean(judged)) if judged else None,
            mel_distance_db=float(np.mean([clip.mel_distance_db for clip in clips])),
            word_agreement=agreements[0] if agreements else None,
        )

    def fields(self) -> dict[str, Any]:
        """Return the card as plain values, for JSON."""
        return {
            "model": asdict(self.model),
            "levels": [asdict(level) for level in self.by_level()],
            "sources": {
                source: {str(levels): self.source_stoi(source, levels) for levels in self.levels} for source in self.sources
            },
            "words": [asdict(agreement) for agreement in self.words],
            "clips": [asdict(clip) for clip in self.clips],
        }


def measure_quality(
    model: CodecModel,
    audio: Sequence[str],
    levels: Sequence[int],
    *,
    recognised: Sequence[str] = (),
    progress: Progress | None = None,
) -> QualityCard:
    """Encode and decode speech, and measure what came out against what went in.

    Args:
        model: the model to judge.
        audio: files, or folders whose audio files are all taken, of speech the model was not trained on. At least one.
        levels: numbers of levels to decode with.
        recognised: files or folders of English speech, for the recogniser.
        progress: called with (clips done, clips in all).

    Raises:
        SettingError: no audio, or a number of levels the model has not.
        AudioFileError: a file that cannot be read, or is shorter than a second; a folder without audio.
        UnavailableError: the extra ``quality`` is not installed.

    """
    if not audio:
        raise SettingError("audio", "no file", "at least one of speech")
    for count in levels:
        if not 1 <= count <= model.info.levels:
            raise SettingError("levels", f"{count}", f"1 .. {model.info.levels}, those of the model")
    require_measures(recogniser=bool(recognised))
    paths, spoken = _files(audio), _files(recognised)
    clips: list[ClipQuality] = []
    agreements = _Agreements(levels) if spoken else None
    for done, path in enumerate([*paths, *spoken], start=1):
        pairs = _decoded(model, path, levels)
        if done <= len(paths):
            clips += [_measured(path, count, original, decoded) for count, original, decoded in pairs]
        elif agreements is not None:
            agreements.add(pairs)
        if progress is not None:
            progress(done, len(paths) + len(spoken))
    return QualityCard(model.info, clips, agreements.result() if agreements else [])


Pair = tuple[int, npt.NDArray[np.float32], npt.NDArray[np.float32]]


class _Agreements:
    """Words heard and missed, summed over clips."""

    def __init__(self, levels: Sequence[int]) -> None:
        self._recogniser = Recogniser()
        self._words = 0
        self._errors = dict.fromkeys(sorted(set(levels)), 0)

    def add(self, pairs: Iterator[Pair]) -> None:
        expected: list[str] | None = None
        for count, original, decoded in pairs:
            if expected is None:
                expected = self._recogniser.words(original)
                self._words += len(expected)
            self._errors[count] += word_errors(expected, self._recogniser.words(decoded))

    def result(self) -> list[WordAgreement]:
        return [WordAgreement(count, self._words, errors) for count, errors in self._errors.items()]


def _decoded(model: CodecModel, path: Path, levels: Sequence[int]) -> Iterator[Pair]:
    """Yield number of levels, original and decoded, both of whole frames, clamped as in a file of 16 bits."""
    pcm = read_clip(path)
    codes = encode_clip(model, pcm, model.info.levels)
    for count in sorted(set(levels)):
        yield count, pcm, np.clip(decode_clip(model, codes[:count])[: len(pcm)], -1, 1)


def read_clip(path: Path) -> npt.NDArray[np.float32]:
    """Read a clip: float32 [samples].

    Raises:
        AudioFileError: it cannot be read, or is shorter than a second.

    """
    with AudioReader(path) as reader:
        pcm = np.concatenate([np.zeros(0, np.float32), *reader.pcm()])
    if len(pcm) < LEAST_SAMPLES:
        raise AudioFileError(str(path), f"{len(pcm)} samples at 24 kHz", "at least a second of speech")
    return pcm


def _measured(path: Path, count: int, original: npt.NDArray[np.float32], decoded: npt.NDArray[np.float32]) -> ClipQuality:
    return ClipQuality(
        source=path.resolve().parent.name,
        name=path.name,
        levels=count,
        stoi=stoi(original, decoded),
        pesq=pesq_wideband(original, decoded),
        mel_distance_db=mel_distance_db(original, decoded),
    )


def _files(given: Sequence[str]) -> list[Path]:
    """Return files, and of folders the audio files anywhere within, in order of their names."""
    found = []
    for entry in map(Path, given):
        inside = sorted(path for path in entry.rglob("*") if path.suffix.lower() in SUFFIXES) if entry.is_dir() else [entry]
        if not inside:
            raise AudioFileError(str(entry), "a folder without audio", f"files that end in {', '.join(SUFFIXES)}")
        found += inside
    return found
