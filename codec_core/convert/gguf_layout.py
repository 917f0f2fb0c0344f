"""Where each payload of a GGUF v3 file lies, for a file the engine has already accepted.

The engine's reader, which trusts nothing, has checked every count, length and type; here they are only stepped over.
"""

from __future__ import annotations

import struct
from typing import Final

from codec_core.convert.source_file import SourceFile
from codec_core.errors import ModelFormatError

GGUF_MAGIC: Final = b"GGUF"
GGUF_VERSION: Final = 3
DEFAULT_ALIGNMENT: Final = 32
UINT32_TYPE: Final = 4
INT32_TYPE: Final = 5
FLOAT32_TYPE: Final = 6
BOOL_TYPE: Final = 7
STRING_TYPE: Final = 8
ARRAY_TYPE: Final = 9
UINT64_TYPE: Final = 10
_SCALAR_BYTES: Final = {
    0: 1,
    1: 1,
    2: 2,
    3: 2,
    UINT32_TYPE: 4,
    INT32_TYPE: 4,
    FLOAT32_TYPE: 4,
    BOOL_TYPE: 1,
    UINT64_TYPE: 8,
    11: 8,
    12: 8,
}
"""Value type ids of the format with their sizes."""
_ALIGNMENT_KEY: Final = b"general.alignment"
_BUFFER_BYTES: Final = 1 << 20


class _Cursor:
    """Reads forward through a file, a buffer at a time."""

    def __init__(self, file: SourceFile) -> None:
        self._file = file
        self._buffer = b""
        self._base = 0
        self.position = 0

    def take(self, size: int) -> bytes:
        left = self._file.size_bytes - self.position
        if size > left:
            raise ModelFormatError(f"{self._file.path}: header", f"{left} bytes left", f"{size} or more")
        start = self.position - self._base
        if not 0 <= start <= len(self._buffer) - size:
            self._base, start = self.position, 0
            self._buffer = self._file.read(self.position, min(max(size, _BUFFER_BYTES), left))
        self.position += size
        return self._buffer[start : start + size]

    def number(self, code: str) -> int:
        return int(struct.unpack(f"<{code}", self.take(struct.calcsize(f"<{code}")))[0])

    def string(self) -> bytes:
        return self.take(self.number("Q"))


def payload_offsets(file: SourceFile) -> dict[str, int]:
    """Return the offset of every payload from the start of the file, by the tensor's name as it is stored.

    Raises:
        ModelFormatError: it is not GGUF v3, or ends early.

    """
    cursor = _Cursor(file)
    magic, version = cursor.take(4), cursor.number("I")
    if magic != GGUF_MAGIC or version != GGUF_VERSION:
        raise ModelFormatError(f"{file.path}: magic and version", f"{magic!r} {version}", f"{GGUF_MAGIC!r} {GGUF_VERSION}")
    tensors, keys = cursor.number("Q"), cursor.number("Q")
    alignment = DEFAULT_ALIGNMENT
    for _ in range(keys):
        key, type_id = cursor.string(), cursor.number("I")
        if key == _ALIGNMENT_KEY and type_id == UINT32_TYPE:
            alignment = cursor.number("I")
        else:
            _skip_value(cursor, type_id)
    offsets = {}
    for _ in range(tensors):
        name = cursor.string().decode()
        cursor.take(8 * cursor.number("I") + 4)
        offsets[name] = cursor.number("Q")
    base = aligned(cursor.position, alignment)
    return {name: base + offset for name, offset in offsets.items()}


def aligned(size: int, alignment: int = DEFAULT_ALIGNMENT) -> int:
    """Round up to a multiple."""
    return -(-size // alignment) * alignment


def _skip_value(cursor: _Cursor, type_id: int) -> None:
    if type_id == STRING_TYPE:
        cursor.string()
    elif type_id == ARRAY_TYPE:
        element, count = cursor.number("I"), cursor.number("Q")
        if element == STRING_TYPE:
            for _ in range(count):
                cursor.string()
        else:
            cursor.take(count * _scalar_bytes(element))
    else:
        cursor.take(_scalar_bytes(type_id))


def _scalar_bytes(type_id: int) -> int:
    if type_id not in _SCALAR_BYTES:
        raise ModelFormatError("metadata value type", f"{type_id}", "a type of GGUF v3, arrays not nested")
    return _SCALAR_BYTES[type_id]
