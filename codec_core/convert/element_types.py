"""Storage types and the conversions between them, as streams of bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from codec_core.errors import CheckpointError
from codec_core.safetensors_file import shown

ELEMENT_BYTES: Final = {"f32": 4, "f16": 2, "bf16": 2}
"""Types a source may have, with their sizes."""
GGML_TYPE_IDS: Final = {"f32": 0, "f16": 1}
"""Types that are written, with their ids in the GGUF format."""


def widen(data: bytes, type_name: str) -> npt.NDArray[np.float32]:
    """Read f32, f16 or bf16 as f32, which holds each exactly."""
    if type_name == "bf16":
        return (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32)
    return np.frombuffer(data, "<f2" if type_name == "f16" else "<f4").astype(np.float32)


def narrow(values: npt.NDArray[np.float32], type_name: str, name: str) -> npt.NDArray[Any]:
    """Store f32 as f32 or f16 (to the nearest, ties to even).

    Raises:
        CheckpointError: a value past the range of f16.

    """
    if type_name == "f32":
        return values.astype("<f4")
    with np.errstate(over="ignore"):
        halves = values.astype("<f2")
    outside = np.isinf(halves) & np.isfinite(values)
    if outside.any():
        raise CheckpointError(f"tensor {shown(name)}", f"{values[int(np.argmax(outside))]}", "values within 65504 for f16")
    return halves


def recode(pieces: Iterable[bytes], stored: str, written: str, name: str) -> Iterator[bytes]:
    """Yield a payload in another type; where the type stays, the very same bytes.

    Raises:
        CheckpointError: a value the type cannot hold.

    """
    for piece in pieces:
        yield piece if stored == written else narrow(widen(piece, stored), written, name).tobytes()
