"""What callers pass as PCM, codes or levels, in the form the engine takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from codec_core.errors import CodeRangeError, InputTypeError, SettingError
from codec_core.pcm import scale_to_float32

if TYPE_CHECKING:
    from codec_core.model import ModelInfo


def pcm_rows(pcm: ArrayLike) -> NDArray[np.float32]:
    """Return PCM as contiguous float32, int16 scaled by 1/32768; whether it is finite is left to the engine.

    Raises:
        InputTypeError: another element type.

    """
    return np.ascontiguousarray(scale_to_float32(np.asarray(pcm)))


def code_rows(codes: ArrayLike) -> NDArray[np.int32]:
    """Return codes of any integer type as contiguous int32.

    Raises:
        InputTypeError: not integers. CodeRangeError: an integer that no 32-bit code can be.

    """
    values = np.asarray(codes)
    if values.dtype.kind not in "iu":
        raise InputTypeError("codes", str(values.dtype), "an integer type")
    limits = np.iinfo(np.int32)
    wide = values.dtype.itemsize >= limits.dtype.itemsize
    if wide and values.size and (int(values.min()) < limits.min or int(values.max()) > limits.max):
        raise CodeRangeError("codes", f"{values.min()} .. {values.max()}", "codes of the model's codebooks")
    return np.ascontiguousarray(values, dtype=np.int32)


def checked_levels(levels: int | None, info: ModelInfo) -> int:
    """Return how many levels a stream shall have: as asked, or what the model gives unless told otherwise.

    Raises:
        InputTypeError: no integer. SettingError: the model has fewer, or it is less than 1.

    """
    if levels is None:
        return info.default_levels
    if isinstance(levels, bool) or not isinstance(levels, (int, np.integer)):
        raise InputTypeError("levels", type(levels).__name__, "an integer")
    if not 1 <= levels <= info.levels:
        raise SettingError("levels", str(levels), f"1 .. {info.levels}")
    return int(levels)
