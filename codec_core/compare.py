"""Two sets of codes, or two sounds, measured against each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from codec_core.codes_file import CodesDocument, format_of, read_codes, read_limited
from codec_core.codes_text import looks_like_codes_text, parse_codes_text
from codec_core.difference import Difference, compare_codes
from codec_core.errors import CodesFileError

FULL_SCALE: Final = 1.0

Codes = npt.NDArray[np.integer[Any]]
Sound = npt.NDArray[np.float32]


@dataclass(frozen=True)
class CodesComparison:
    """How far two sets of codes agree, over the levels and frames that both have."""

    expected_shape: tuple[int, int]
    """Levels and frames of the first."""
    found_shape: tuple[int, int]
    matches: npt.NDArray[np.bool_]
    """bool [common levels, common frames]"""
    first_difference: Difference | None
    """In order of time; of the shapes where everything common agrees but they differ."""

    @property
    def token_exact(self) -> bool:
        """Whether they have the same shape and every code is equal."""
        return self.first_difference is None

    @property
    def code_match(self) -> float:
        """Share of common codes that are equal. Where there is none, 1 if the shapes are equal and 0 if not."""
        return self._share(self.matches)

    @property
    def level_match(self) -> list[float]:
        """The same by level."""
        return [self._share(row) for row in self.matches]

    @property
    def frame_match(self) -> list[float]:
        """The same by frame."""
        return [self._share(column) for column in self.matches.T]

    def prefix_match(self, levels: int) -> float:
        """Share of codes of the first ``levels`` that are equal: late levels inherit the differences of early ones."""
        return self._share(self.matches[:levels])

    def _share(self, matches: npt.NDArray[np.bool_]) -> float:
        return float(matches.mean()) if matches.size else float(self.expected_shape == self.found_shape)


@dataclass(frozen=True)
class SoundComparison:
    """How far two sounds agree, over the samples both have."""

    expected_samples: int
    found_samples: int
    bit_exact: bool
    """Same length and the same bits."""
    first_difference_sample: int | None
    largest_error: float
    psnr_db: float
    """Full scale over the RMS of the error; infinite where there is none."""
    snr_db: float
    """The RMS of the first over that of the error."""


def compare_code_sets(expected: Codes, found: Codes) -> CodesComparison:
    """Compare codes [levels, frames] of any shapes."""
    levels, frames = np.minimum(expected.shape, found.shape)
    common = expected[:levels, :frames], found[:levels, :frames]
    difference = compare_codes(*common) or compare_codes(expected, found)
    shapes = (expected.shape[0], expected.shape[1]), (found.shape[0], found.shape[1])
    return CodesComparison(*shapes, np.equal(*common), difference)


def compare_sounds(expected: Sound, found: Sound) -> SoundComparison:
    """Compare float32 [samples] of any lengths."""
    common = min(len(expected), len(found))
    first, second = expected[:common], found[:common]
    differing = np.ascontiguousarray(first).view(np.uint32) != np.ascontiguousarray(second).view(np.uint32)
    error = second.astype(np.float64) - first
    power, error_power = (float((side.astype(np.float64) ** 2).mean()) if common else 0.0 for side in (first, error))
    return SoundComparison(
        expected_samples=len(expected),
        found_samples=len(found),
        bit_exact=len(expected) == len(found) and not differing.any(),
        first_difference_sample=int(np.argmax(differing)) if differing.any() else None,
        largest_error=float(np.abs(error).max()) if common else 0.0,
        psnr_db=_decibels(FULL_SCALE**2, error_power),
        snr_db=_decibels(power, error_power),
    )


def read_any_codes(path: str) -> CodesDocument:
    """Read codes in any format of :mod:`codec_core.codes_file`, or as ``frame=N codes=a,b,...`` lines whatever the suffix.

    Raises:
        CodesFileError: it cannot be read, or is neither.

    """
    try:
        format_of(path)
    except CodesFileError:
        data = read_limited(path)
        if not looks_like_codes_text(data):
            raise
        return parse_codes_text(data, path)
    return read_codes(path)


def _decibels(power: float, error_power: float) -> float:
    if error_power == 0:
        return float("inf")
    return 10 * float(np.log10(power / error_power)) if power else float("-inf")
