"""Storage types and the conversions between them, as streams of bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from codec_core.convert.quantised_blocks import quantise_blocks, require_within, widen_blocks

BLOCK_ELEMENTS: Final = {"f32": 1, "f16": 1, "bf16": 1, "i32": 1, "q8_0": 32, "q4_0": 32, "q4_k": 256}
"""Values that are stored together, by type; only quantised ones store more than one."""
BLOCK_BYTES: Final = {"f32": 4, "f16": 2, "bf16": 2, "i32": 4, "q8_0": 34, "q4_0": 18, "q4_k": 144}
"""Types a source may have, with the sizes of their blocks."""
GGML_TYPE_IDS: Final = {"f32": 0, "f16": 1, "q4_0": 2, "q8_0": 8, "q4_k": 12, "i32": 26, "bf16": 30}
"""Types that are written, with their ids in the GGUF format."""
QUANTISED_TYPES: Final = ("q8_0", "q4_0", "q4_k")
"""Those of blocks with scales."""


def widen(data: bytes, type_name: str) -> npt.NDArray[np.float32]:
    """Read any of these types but i32 as f32, which holds each value exactly, but for q4_k: those are rounded, as ggml does."""
    if type_name in QUANTISED_TYPES:
        return widen_blocks(data, type_name)
    if type_name == "bf16":
        return (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32)
    return np.frombuffer(data, "<f2" if type_name == "f16" else "<f4").astype(np.float32)


def narrow(values: npt.NDArray[np.float32], type_name: str, name: str) -> npt.NDArray[Any]:
    """Store f32 as f32, f16 or bf16 (to the nearest, ties to even) or whole blocks of q8_0, q4_0 or q4_k.

    Raises:
        CheckpointError: a value past the range of f16 or bf16, or a block past that of its type.

    """
    if type_name == "f32":
        return values.astype("<f4")
    if type_name in QUANTISED_TYPES:
        return quantise_blocks(values, type_name, name)
    if type_name == "bf16":
        return _round_to_bf16(values, name)
    with np.errstate(over="ignore"):
        halves = values.astype("<f2")
    require_within(values, np.isinf(halves) & np.isfinite(values), name, "values within 65504 for f16")
    return halves


def recode(pieces: Iterable[bytes], stored: str, written: str, name: str) -> Iterator[bytes]:
    """Yield a payload in another type; where the type stays, the very same bytes.

    Raises:
        CheckpointError: a value the type cannot hold.

    """
    if stored == written:
        yield from pieces
        return
    unit_bytes = BLOCK_BYTES[stored] * max(1, BLOCK_ELEMENTS[written] // BLOCK_ELEMENTS[stored])
    for piece in whole_units(pieces, unit_bytes):
        yield narrow(widen(piece, stored), written, name).tobytes()


def whole_units(pieces: Iterable[bytes], unit_bytes: int) -> Iterator[bytes]:
    """Cut a payload anew, so that every piece is whole units."""
    rest = b""
    for piece in pieces:
        joined = rest + piece if rest else piece
        whole = len(joined) // unit_bytes * unit_bytes
        rest = joined[whole:]
        if whole:
            yield joined[:whole] if rest else joined
    if rest:
        yield rest


def _round_to_bf16(values: npt.NDArray[np.float32], name: str) -> npt.NDArray[Any]:
    """Keep the upper half of each value's bits, rounded; of NaN, whatever stays NaN."""
    bits = values.view(np.uint32)
    rounded = ((bits + np.uint32(0x7FFF) + ((bits >> 16) & np.uint32(1))) >> 16).astype("<u2")
    rounded = np.where(np.isnan(values), (bits >> 16).astype("<u2") | np.uint16(0x40), rounded).astype("<u2")
    infinite = (rounded & 0x7FFF) == 0x7F80
    require_within(values, infinite & np.isfinite(values), name, "values within 3.39e38 for bf16")
    return rounded
