"""Codes with what is known about them, and what holds for them in every format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from codec_core.errors import CodesFileError

FRAME_SAMPLES: Final = 1920
"""Samples at 24 kHz that one frame of codes stands for."""
MOST_LEVELS: Final = 1024
"""Most levels any file may have."""
MOST_CODE: Final = 65535
"""Largest code any file may have."""


@dataclass(frozen=True)
class CodesDocument:
    """Codes and what is known about them."""

    codes: npt.NDArray[np.int32]
    """[levels, frames], each 0 .. 65535."""
    samples: int | None = None
    """Samples at 24 kHz the codes stand for: frames * 1920 less the padding of the last frame; None where unknown."""
    provenance: Mapping[str, str] = field(default_factory=dict)

    @property
    def levels(self) -> int:
        """Number of RVQ levels."""
        return int(self.codes.shape[0])

    @property
    def frames(self) -> int:
        """Number of frames."""
        return int(self.codes.shape[1])


def check_document(document: CodesDocument, subject: str) -> None:
    """Check what holds in every format.

    Raises:
        CodesFileError: dimensions, number of levels, range of codes or sample count are impossible.

    """
    codes = document.codes
    if codes.ndim != 2 or not 1 <= codes.shape[0] <= MOST_LEVELS:
        raise CodesFileError(subject, f"shape {list(codes.shape)}", f"[levels, frames] with 1 .. {MOST_LEVELS} levels")
    outside = (codes < 0) | (codes > MOST_CODE)
    if outside.any():
        level, frame = np.unravel_index(int(np.argmax(outside)), codes.shape)
        raise CodesFileError(f"{subject}: level {level}, frame {frame}", f"{codes[level, frame]}", "a code of 0 .. 65535")
    if document.samples is not None:
        most = document.frames * FRAME_SAMPLES
        least = max(0, most - FRAME_SAMPLES + 1)
        if not least <= document.samples <= most:
            raise CodesFileError(
                f"{subject}: samples", f"{document.samples}", f"{least} .. {most} for {document.frames} frames"
            )
