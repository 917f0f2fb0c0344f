"""Folders of golden vectors.

A folder belongs to one model and holds, for each signal::

    signals/NAME.wav           24 kHz mono, 16 bits
    NAME.npz                   any of, for N in kyutai, ggml, ggml-causal:
      N_codes                  integers [levels, frames]: what encoding must give
      N_codes_second           codes another right implementation gives; where the two differ, either is right
      N_codes_flushed          with the zero-padded last frame
      N_pcm                    float32 [frames * 1920]: N_codes (N_codes_second where there are no others) decoded
      N_pcm_digests            uint8 [frames, 8]: digests of its bits, frame by frame
      least_code_match         share of codes that must be right; all of them where absent
      exact_levels             levels, from the first, that must be right altogether
    stages_N_NAME.npz          every stage of the first frames, float32 [channels, steps of all frames]; optionally only
                               some of the steps: STAGE.steps says which, STAGE.digests has uint8 [steps, 8] of all
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from codec_core.audio_file import AudioReader
from codec_core.errors import AudioFileError, CodesFileError, SettingError
from codec_core.pcm import CODEC_RATE_HZ

PACKAGED: Final = Path(__file__).parent.parent / "vectors"
"""Two folders: ``full``, of the full-size synthetic model, and ``default``, of the embedded default model."""
STAGES_PREFIX: Final = "stages_"


@dataclass(frozen=True)
class SignalVectors:
    """One signal and what is known of it."""

    name: str
    folder: Path

    @cached_property
    def pcm(self) -> npt.NDArray[np.float32]:
        """float32 [samples].

        Raises:
            AudioFileError: the file is missing, damaged, or not 24 kHz mono.

        """
        path = self.folder / "signals" / f"{self.name}.wav"
        with AudioReader(path) as reader:
            if (reader.sample_rate_hz, reader.channels) != (CODEC_RATE_HZ, 1):
                found = f"{reader.sample_rate_hz} Hz, {reader.channels} channels"
                raise AudioFileError(str(path), found, f"{CODEC_RATE_HZ} Hz mono")
            return np.concatenate([np.zeros(0, np.float32), *reader.pcm()])

    @cached_property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Every array of the file."""
        return read_arrays(self.folder / f"{self.name}.npz")

    def array(self, name: str) -> npt.NDArray[Any] | None:
        """Return an array, or None where the file has no such."""
        return self.arrays.get(name)


class StageVectors:
    """Every stage of the first frames of one signal."""

    def __init__(self, path: Path) -> None:
        self._arrays = read_arrays(path)

    def names(self) -> list[str]:
        """Return the stages, in the file's order."""
        return [name for name in self._arrays if not name.endswith((".steps", ".digests"))]

    def values(self, name: str) -> npt.NDArray[np.float32]:
        """float32 [channels, stored steps]."""
        return self._arrays[name].astype(np.float32, copy=False)

    def steps(self, name: str) -> npt.NDArray[Any] | None:
        """Which steps are stored; None: all of them."""
        return self._arrays.get(f"{name}.steps")

    def digests(self, name: str) -> npt.NDArray[np.uint8] | None:
        """Digests of every step, uint8 [steps, 8]."""
        return self._arrays.get(f"{name}.digests")


class VectorFolder:
    """A folder of vectors of one model."""

    def __init__(self, path: Path) -> None:
        """Look into a folder.

        Raises:
            SettingError: no folder, or none with vectors.

        """
        self.path = path
        names = sorted(file.stem for file in path.glob("*.npz") if (path / "signals" / f"{file.stem}.wav").is_file())
        if not names:
            raise SettingError("vectors", str(path), "a folder with NAME.npz and signals/NAME.wav")
        self.signals = [SignalVectors(name, path) for name in names]

    def stages(self, numerics: str) -> Iterator[tuple[SignalVectors, StageVectors]]:
        """Yield the signals whose stages under these numerics are known."""
        for signal in self.signals:
            path = self.path / f"{STAGES_PREFIX}{numerics}_{signal.name}.npz"
            if path.is_file():
                yield signal, StageVectors(path)


def read_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Read an ``.npz`` file.

    Raises:
        CodesFileError: it is missing or damaged.

    """
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            return dict(file)
    except Exception as cause:  # NumPy lets through whatever zipfile, zlib and its own parser raise.
        raise CodesFileError(str(path), f"{type(cause).__name__}: {cause}", "an undamaged .npz file") from cause
