"""The safetensors container: header in, header out.

Payloads are the caller's to read and to write, in pieces if they are large.

Layout: u64 length of the header (little-endian), the header (JSON: tensor name -> dtype, shape, data_offsets; and
``__metadata__``, strings only), the payloads without a gap in between.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from codec_core.errors import CodecError

HEADER_CAP_BYTES = 16 << 20
"""Longest header that is read. Mimi's own is 60 KB."""

ELEMENT_BYTES = {
    "BOOL": 1,
    "U8": 1,
    "I8": 1,
    "U16": 2,
    "I16": 2,
    "F16": 2,
    "BF16": 2,
    "U32": 4,
    "I32": 4,
    "F32": 4,
    "U64": 8,
    "I64": 8,
    "F64": 8,
}
"""Element types a header may name, with their size."""


@dataclass(frozen=True)
class StoredTensor:
    """One tensor of a safetensors file."""

    name: str
    dtype: str
    """A key of :data:`ELEMENT_BYTES`."""
    shape: tuple[int, ...]
    offset_bytes: int
    """From the start of the file."""
    size_bytes: int


@dataclass(frozen=True)
class SafetensorsHeader:
    """What a header says, checked against the file's size."""

    tensors: dict[str, StoredTensor]
    """By name, in the order of their payloads."""
    metadata: dict[str, str]


def read_header(
    read: Callable[[int, int], bytes], file_bytes: int, *, error: type[CodecError], subject: str
) -> SafetensorsHeader:
    """Read and check a header; nothing longer than the file, or than :data:`HEADER_CAP_BYTES`, is ever held.

    Args:
        read: ``read(offset_bytes, size_bytes)`` returns exactly that part of the file.
        file_bytes: size of the whole file.
        error: class of the error where the header lies.
        subject: what to call the file in errors.

    Raises:
        error: naming the field, what was found and what was expected.

    """
    if file_bytes < 8:
        raise error(subject, f"{file_bytes} bytes", "a safetensors file (at least 8 bytes)")
    (length,) = struct.unpack("<Q", read(0, 8))
    limit = min(HEADER_CAP_BYTES, file_bytes - 8)
    if length > limit:
        raise error(f"{subject}: header length", f"{length}", f"at most {limit} (is this a safetensors file?)")
    fields = _parse_json(read(8, length), error, subject)
    metadata = _check_metadata(fields.pop("__metadata__", {}), error, subject)
    base = 8 + length
    tensors = [_check_tensor(name, entry, base, error, subject) for name, entry in fields.items()]
    tensors.sort(key=lambda tensor: (tensor.offset_bytes, tensor.size_bytes))
    end = base
    for tensor in tensors:
        if tensor.offset_bytes != end:
            field = f"{subject}: {shown(tensor.name)}: data_offsets"
            raise error(field, f"a start at {tensor.offset_bytes - base}", f"{end - base}")
        end += tensor.size_bytes
    if end != file_bytes:
        raise error(f"{subject}: file size", f"{file_bytes} bytes", f"{end} bytes, as the header says")
    return SafetensorsHeader({tensor.name: tensor for tensor in tensors}, metadata)


def build_header(tensors: Iterable[tuple[str, str, tuple[int, ...]]], metadata: Mapping[str, str]) -> bytes:
    """Write the length and the header of ``(name, dtype, shape)`` in payload order, padded with blanks to 8 bytes."""
    fields: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    offset = 0
    for name, dtype, shape in tensors:
        end = offset + math.prod(shape) * ELEMENT_BYTES[dtype]
        fields[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(fields, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def shown(name: str) -> str:
    """Return a name out of a file as messages show it: quoted, in ASCII, of at most 120 characters before escaping."""
    return f"{name[:120]!a}"


def _parse_json(text: bytes, error: type[CodecError], subject: str) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) != len(pairs):
            seen: set[str] = set()
            twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
            raise error(f"{subject}: header", f"the key {shown(twice)} twice", "each key once")
        return fields

    def no_constant(text: str) -> NoReturn:
        raise ValueError(text)

    try:
        fields = json.loads(text.decode("utf-8"), object_pairs_hook=unique, parse_constant=no_constant)
    except (ValueError, RecursionError) as cause:
        raise error(f"{subject}: header", "bytes that are not JSON", "a safetensors header") from cause
    if not isinstance(fields, dict):
        raise error(f"{subject}: header", type(fields).__name__, "a JSON object")
    return fields


def _check_metadata(metadata: object, error: type[CodecError], subject: str) -> dict[str, str]:
    if not isinstance(metadata, dict):
        raise error(f"{subject}: __metadata__", type(metadata).__name__, "an object of strings")
    for key, value in metadata.items():
        if not isinstance(value, str):
            raise error(f"{subject}: __metadata__: {shown(key)}", type(value).__name__, "a string")
    return metadata


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 48


def _check_tensor(name: str, entry: object, base: int, error: type[CodecError], subject: str) -> StoredTensor:
    field = f"{subject}: {shown(name)}"
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise error(field, "an unknown form of entry", "dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in ELEMENT_BYTES:
        raise error(f"{field}: dtype", repr(dtype)[:80], "one of " + ", ".join(ELEMENT_BYTES))
    if not isinstance(shape, list) or len(shape) > 8 or not all(_is_count(size) for size in shape):
        raise error(f"{field}: shape", repr(shape)[:80], "at most 8 sizes of 0 or more")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(_is_count(offset) for offset in offsets):
        raise error(f"{field}: data_offsets", repr(offsets)[:80], "two offsets of 0 or more")
    size = math.prod(shape) * ELEMENT_BYTES[dtype]
    if offsets[1] - offsets[0] != size:
        raise error(f"{field}: data_offsets", f"{offsets[1] - offsets[0]} bytes", f"{size} bytes for shape {shape} of {dtype}")
    return StoredTensor(name, dtype, tuple(shape), base + offsets[0], size)
