"""Storage types and the conversions between them, as streams of bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from codec_core.errors import CheckpointError
from codec_core.safetensors_file import shown

BLOCK_ELEMENTS: Final = {"f32": 1, "f16": 1, "bf16": 1, "i32": 1, "q8_0": 32, "q4_0": 32, "q4_k": 256}
"""Values that are stored together, by type; only quantised ones store more than one."""
BLOCK_BYTES: Final = {"f32": 4, "f16": 2, "bf16": 2, "i32": 4, "q8_0": 34, "q4_0": 18, "q4_k": 144}
"""Types a source may have, with the sizes of their blocks."""
GGML_TYPE_IDS: Final = {"f32": 0, "f16": 1, "q4_0": 2, "q8_0": 8, "q4_k": 12, "i32": 26, "bf16": 30}
"""Types that are written, with their ids in the GGUF format."""
Q8_0_BLOCK: Final = np.dtype([("scale", "<f2"), ("quants", "i1", (32,))])
"""One block of q8_0: value i is ``scale * quants[i]``."""


def widen(data: bytes, type_name: str) -> npt.NDArray[np.float32]:
    """Read f32, f16, bf16 or q8_0 as f32, which holds each value exactly."""
    if type_name == "q8_0":
        blocks = np.frombuffer(data, Q8_0_BLOCK)
        return (blocks["scale"].astype(np.float32)[:, None] * blocks["quants"].astype(np.float32)).reshape(-1)
    if type_name == "bf16":
        return (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32)
    return np.frombuffer(data, "<f2" if type_name == "f16" else "<f4").astype(np.float32)


def narrow(values: npt.NDArray[np.float32], type_name: str, name: str) -> npt.NDArray[Any]:
    """Store f32 as f32, f16 or bf16 (to the nearest, ties to even) or q8_0 (whole blocks).

    Raises:
        CheckpointError: a value past the range of f16 or bf16, or a block past that of q8_0.

    """
    if type_name == "f32":
        return values.astype("<f4")
    if type_name == "q8_0":
        return _quantise(values.reshape(-1, BLOCK_ELEMENTS["q8_0"]), name)
    if type_name == "bf16":
        return _round_to_bf16(values, name)
    with np.errstate(over="ignore"):
        halves = values.astype("<f2")
    _require_within(values, np.isinf(halves) & np.isfinite(values), name, "values within 65504 for f16")
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
    _require_within(values, infinite & np.isfinite(values), name, "values within 3.39e38 for bf16")
    return rounded


def _quantise(blocks: npt.NDArray[np.float32], name: str) -> npt.NDArray[Any]:
    """Store blocks of 32 values: the largest magnitude over 127 as f16, the values over it rounded half away from zero."""
    scales = np.abs(blocks).max(axis=1, keepdims=True, initial=0) / np.float32(127)
    stored = np.empty(len(blocks), Q8_0_BLOCK)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        stored["scale"] = scales[:, 0]
        inverse = np.float32(1) / scales
        # Values too small for the scale to have an inverse are nothing in f16 either.
        scaled = blocks * np.where(np.isfinite(inverse), inverse, np.float32(0))
    outside = ~np.isfinite(stored["scale"].astype(np.float32))[:, None] | ~np.isfinite(blocks)
    _require_within(blocks, outside, name, "finite values within 8319008 for q8_0")
    whole = np.floor(np.abs(scaled))
    rounded = whole + np.floor(2 * (np.abs(scaled) - whole))
    stored["quants"] = np.copysign(rounded, scaled).astype(np.int8)
    return stored


def _require_within(values: npt.NDArray[np.float32], outside: npt.NDArray[np.bool_], name: str, expected: str) -> None:
    if outside.any():
        found = values.reshape(-1)[int(np.argmax(np.broadcast_to(outside, values.shape)))]
        raise CheckpointError(f"tensor {shown(name)}", f"{found}", expected)
