"""The wire format of Protocol Buffers, as much as SentencePiece's ``.model`` files need: fields out, fields in.

A message is a row of fields, each a tag (number and wire type, as a varint) and a value: a varint, four bytes, eight bytes, or
a length and so many bytes. Unknown fields are stepped over, as the format asks.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from codec_core.errors import CodecError

Value = int | bytes
"""A varint as an int; everything else as its bytes."""

_VARINT: Final = 0
_EIGHT_BYTES: Final = 1
_LENGTH: Final = 2
_FOUR_BYTES: Final = 5
_VARINT_CAP_BYTES: Final = 10


def fields_of(message: bytes, *, error: type[CodecError], subject: str) -> Iterator[tuple[int, Value]]:
    """Yield the number and value of each field of a message, in order.

    Args:
        message: its bytes.
        error: class of the error where they are no message.
        subject: what to call the message in errors.

    """
    position = 0
    while position < len(message):
        tag, position = _varint(message, position, error, subject)
        number, wire_type = tag >> 3, tag & 7
        if number == 0:
            raise error(subject, f"field 0 at byte {position}", "fields of 1 or more")
        if wire_type == _VARINT:
            value, position = _varint(message, position, error, subject)
            yield number, value
            continue
        size = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}.get(wire_type)
        if wire_type == _LENGTH:
            size, position = _varint(message, position, error, subject)
        if size is None:
            raise error(subject, f"wire type {wire_type} at byte {position}", "0, 1, 2 or 5")
        if size > len(message) - position:
            raise error(subject, f"the end at byte {len(message)}", f"{size} bytes from byte {position}")
        yield number, message[position : position + size]
        position += size


def varint_field(number: int, value: int) -> bytes:
    """Write a field of a number; negative ones as the format has them, in two's complement of 64 bits."""
    return _varint_bytes(number << 3 | _VARINT) + _varint_bytes(value & (1 << 64) - 1)


def float_field(number: int, value: float) -> bytes:
    """Write a field of a float32."""
    return _varint_bytes(number << 3 | _FOUR_BYTES) + struct.pack("<f", value)


def bytes_field(number: int, value: bytes) -> bytes:
    """Write a field of bytes, a text or a message."""
    return _varint_bytes(number << 3 | _LENGTH) + _varint_bytes(len(value)) + value


def _varint(message: bytes, position: int, error: type[CodecError], subject: str) -> tuple[int, int]:
    value = 0
    for index, byte in enumerate(message[position : position + _VARINT_CAP_BYTES]):
        value |= (byte & 127) << 7 * index
        if byte < 128:
            return value, position + index + 1
    raise error(subject, f"a number that does not end at byte {position}", f"at most {_VARINT_CAP_BYTES} bytes of it")


def _varint_bytes(value: int) -> bytes:
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
