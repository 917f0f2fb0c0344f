"""Writes a GGUF v3 file from its parts, one payload piece at a time."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from pathlib import Path

from codec_core.convert.element_types import GGML_TYPE_IDS
from codec_core.convert.gguf_layout import FLOAT32_TYPE, GGUF_MAGIC, GGUF_VERSION, STRING_TYPE, UINT32_TYPE, aligned
from codec_core.convert.planned_model import PlannedTensor
from codec_core.errors import InternalError
from codec_core.safetensors_file import shown

Metadata = list[tuple[str, str | int | float]]
"""Keys and values in the order they are written: str as a string, int as u32, float as f32."""


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


def _value(value: str | int | float) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", STRING_TYPE) + _string(value)
    if isinstance(value, int):
        return struct.pack("<II", UINT32_TYPE, value)
    return struct.pack("<If", FLOAT32_TYPE, value)


def _entry(tensor: PlannedTensor, offset: int) -> bytes:
    dims = struct.pack(f"<I{len(tensor.dims)}Q", len(tensor.dims), *tensor.dims)
    return _string(tensor.name) + dims + struct.pack("<IQ", GGML_TYPE_IDS[tensor.written_type], offset)
