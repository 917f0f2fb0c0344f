"""Arrays to the bytes of the wire."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from codec_core.client.settings import DTYPES, StreamSettings
from codec_core.errors import CodeRangeError, InputShapeError, InputTypeError
from codec_core.pcm import to_float32, to_int16, to_mono

Payload = bytes | bytearray | memoryview | npt.NDArray[Any]
"""Bytes as on the wire, or an array: audio ``[n]`` or ``[n, channels]``, codes ``[levels]`` or ``[levels, frames]``."""


def payload_bytes(data: Payload, settings: StreamSettings, levels: int, codebook_entries: int) -> bytes:
    """Turn input into the bytes of the wire; bytes pass as they are.

    Raises:
        InputTypeError: audio that is not int16, float32 or float64; codes that are not whole numbers.
        InputShapeError: another number of channels or levels than agreed.
        NonFiniteInputError: NaN or infinity.
        CodeRangeError: a code outside the codebook, naming level and frame.

    """
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    if settings.mode == "decode":
        return _code_bytes(data, levels, codebook_entries)
    return _audio_bytes(data, settings)


def opus_samples(data: Payload, settings: StreamSettings) -> npt.NDArray[np.float32]:
    """Turn input that is to be made into Opus into float32 mono ``[n]``.

    Raises:
        InputTypeError: bytes, or audio that is not int16, float32 or float64.
        InputShapeError: another number of channels than agreed.
        NonFiniteInputError: NaN or infinity.

    """
    if isinstance(data, bytes | bytearray | memoryview):
        raise InputTypeError("pcm", "bytes", "an array: this client makes Opus of it")
    _require_shape(data, settings)
    return to_mono(to_float32(data))


def _require_shape(pcm: npt.NDArray[Any], settings: StreamSettings) -> None:
    if not (pcm.ndim == 1 and settings.channels == 1) and not (pcm.ndim == 2 and pcm.shape[1] == settings.channels):
        raise InputShapeError("pcm", str(list(pcm.shape)), f"[n, {settings.channels}]" + (" or [n]" * (settings.channels == 1)))


def _audio_bytes(pcm: npt.NDArray[Any], settings: StreamSettings) -> bytes:
    _require_shape(pcm, settings)
    if settings.sample_format == "s16le":
        samples: npt.NDArray[Any] = pcm if pcm.dtype == np.int16 else to_int16(to_float32(pcm))
    else:
        samples = to_float32(pcm)
    return samples.astype(DTYPES[settings.sample_format], copy=False).tobytes()


def _code_bytes(codes: npt.NDArray[Any], levels: int, codebook_entries: int) -> bytes:
    if not np.issubdtype(codes.dtype, np.integer):
        raise InputTypeError("codes", str(codes.dtype), "whole numbers")
    columns = codes.reshape(-1, 1) if codes.ndim == 1 else codes
    if columns.ndim != 2 or columns.shape[0] != levels:
        raise InputShapeError("codes", str(list(codes.shape)), f"[{levels}] or [{levels}, frames]")
    outside = (columns < 0) | (columns >= codebook_entries)
    if outside.any():
        level, frame = np.unravel_index(int(np.argmax(outside)), columns.shape)
        raise CodeRangeError(f"codes[{level}, {frame}]", str(columns[level, frame]), f"0 .. {codebook_entries - 1}")
    return np.ascontiguousarray(columns.T, "<u2").tobytes()
