"""Writes a GGUF v3 file from its parts, one payload piece at a time."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy.typing as npt

from codec_core.convert.element_types import GGML_TYPE_IDS
from codec_core.convert.gguf_layout import (
    ARRAY_TYPE,
    BOOL_TYPE,
    FLOAT32_TYPE,
    GGUF_MAGIC,
    GGUF_VERSION,
    INT32_TYPE,
    STRING_TYPE,
    UINT32_TYPE,
    UINT64_TYPE,
    aligned,
)
from codec_core.convert.planned_model import PlannedTensor
from codec_core.errors import InternalError
from codec_core.safetensors_file import shown

MetadataValue = str | bool | int | float | list[str] | npt.NDArray[Any]
Metadata = Sequence[tuple[str, MetadataValue]]
"""Keys and values in the order they are written: str as a string, bool as such, int as u32 (i32 below 0, u64 above), float as
f32, a list as an array of strings, an array as one of its element type."""
_ELEMENT_TYPES: Final = {"u1": 0, "i1": 1, "u2": 2, "i2": 3, "u4": 4, "i4": 5, "f4": 6, "u8": 10, "i8": 11, "f8": 12}
"""Value type ids by kind and size of an array's elements."""


def write_gguf(path: Path, metadata: Metadata, tensors: list[PlannedTensor], advance: Callable[[int], None]) -> None:
    """Write a file; holds one piece of one payload at a time.

    Args:
        path: an existing file to fill.
        metadata: see :data:`Metadata`.
        tensors: in the order they shall lie in the file.
        advance: told the size of each piece that is written.

    """
    with path.open("wb") as file:
        file.write(GGUF_MAGIC + struct.pack("<IQQ", GGUF_VERSION, len(tensors), len(metadata)))
        for key, value in metadata:
            file.write(_string(key) + _value(value))
        offset = 0
        for tensor in tensors:
            file.write(_entry(tensor, offset))
            offset += aligned(tensor.size_bytes)
        file.write(bytes(aligned(file.tell()) - file.tell()))
        for tensor in tensors:
            written = 0
            for piece in tensor.payload():
                written += file.write(piece)
                advance(len(piece))
            if written != tensor.size_bytes:
                raise InternalError(f"payload of {shown(tensor.name)}", f"{written} bytes", f"{tensor.size_bytes}")
            file.write(bytes(aligned(written) - written))


def payload_bytes(tensors: Iterable[PlannedTensor]) -> int:
    """Return the sum of the payloads' sizes, without padding."""
    return sum(tensor.size_bytes for tensor in tensors)


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(value: MetadataValue) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", STRING_TYPE) + _string(value)
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, list):
        return struct.pack("<IIQ", ARRAY_TYPE, STRING_TYPE, len(value)) + b"".join(map(_string, value))
    element_type = _ELEMENT_TYPES[f"{value.dtype.kind}{value.dtype.itemsize}"]
    return struct.pack("<IIQ", ARRAY_TYPE, element_type, value.size) + value.astype(value.dtype.newbyteorder("<")).tobytes()


def _number(value: bool | int | float) -> bytes:
    if isinstance(value, bool):
        return struct.pack("<IB", BOOL_TYPE, value)
    if isinstance(value, float):
        return struct.pack("<If", FLOAT32_TYPE, value)
    if value < 0:
        return struct.pack("<Ii", INT32_TYPE, value)
    return struct.pack("<II", UINT32_TYPE, value) if value < 1 << 32 else struct.pack("<IQ", UINT64_TYPE, value)


def _entry(tensor: PlannedTensor, offset: int) -> bytes:
    dims = struct.pack(f"<I{len(tensor.dims)}Q", len(tensor.dims), *tensor.dims)
    return _string(tensor.name) + dims + struct.pack("<IQ", GGML_TYPE_IDS[tensor.written_type], offset)
