"""Codes as bytes: the four formats they are written in."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from codec_core.codes_document import MOST_LEVELS, CodesDocument, check_document
from codec_core.codes_json import codes_json_pieces, parse_codes_json
from codec_core.errors import CodesFileError
from codec_core.safetensors_file import build_header, read_header

CodesFormat = Literal["npy", "mimi", "json", "safetensors"]
FORMATS: Final[tuple[CodesFormat, ...]] = get_args(CodesFormat)


def parse_codes(data: bytes, form: CodesFormat, subject: str = "codes") -> CodesDocument:
    """Read codes from bytes.

    Args:
        data: a whole file.
        form: its format.
        subject: what to call it in errors.

    Raises:
        CodesFileError: the bytes are not of that format, or hold what codes cannot be; names the field, found and expected.

    """
    document = _PARSERS[form](data, subject)
    check_document(document, subject)
    return document


def serialize_codes(document: CodesDocument, form: CodesFormat) -> bytes:
    """Turn codes into bytes; :func:`parse_codes` reverses it.

    Raises:
        CodesFileError: the document breaks a rule of :class:`CodesDocument`, or the format cannot hold a code.

    """
    check_document(document, "codes")
    return _SERIALIZERS[form](document)


def _narrow(codes: npt.NDArray[np.int32]) -> npt.NDArray[Any]:
    """Return [levels, frames] in the narrower of int16 and uint16 that holds them, little-endian."""
    wide = codes.size > 0 and int(codes.max()) > 32767
    return np.ascontiguousarray(codes, dtype="<u2" if wide else "<i2")


def _parse_npy(data: bytes, subject: str) -> CodesDocument:
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        reader = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
        shape, fortran_order, dtype = reader(stream)
    except Exception as cause:  # NumPy lets through whatever Python's own parser raises.
        raise CodesFileError(f"{subject}: header", "bytes that are no .npy header", "a .npy file of version 1 or 2") from cause
    # NumPy takes a bool for a size.
    is_shape = len(shape) == 2 and all(type(size) is int and 0 <= size < 1 << 48 for size in shape)
    if dtype.kind not in "iu" or not is_shape:
        raise CodesFileError(f"{subject}: header", f"{dtype} {list(shape)}", "an integer array [levels, frames]")
    payload = data[stream.tell() :]
    size = shape[0] * shape[1] * dtype.itemsize
    if len(payload) != size:
        raise CodesFileError(f"{subject}: payload", f"{len(payload)} bytes", f"{size} bytes for {dtype} {list(shape)}")
    array = np.frombuffer(payload, dtype).reshape(shape, order="F" if fortran_order else "C")
    return CodesDocument(_to_int32(array, subject))


def _to_int32(array: npt.NDArray[Any], subject: str) -> npt.NDArray[np.int32]:
    """Narrow any integer array, refusing what would wrap."""
    if array.size and (int(array.max()) > 65535 or int(array.min()) < 0):
        worst = int(array.max()) if int(array.max()) > 65535 else int(array.min())
        raise CodesFileError(subject, f"{worst}", "codes of 0 .. 65535")
    return np.ascontiguousarray(array, dtype=np.int32)


def _serialize_npy(document: CodesDocument) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, _narrow(document.codes), version=(1, 0), allow_pickle=False)
    return stream.getvalue()


def _parse_mimi(data: bytes, subject: str) -> CodesDocument:
    if len(data) < 8 or data[:4] != b"MIMI":
        raise CodesFileError(f"{subject}: magic", repr(data[:4]), "b'MIMI' and i32 levels")
    (levels,) = struct.unpack_from("<i", data, 4)
    if not 1 <= levels <= MOST_LEVELS:
        raise CodesFileError(f"{subject}: levels", f"{levels}", f"1 .. {MOST_LEVELS}")
    if (len(data) - 8) % (2 * levels):
        raise CodesFileError(f"{subject}: payload", f"{len(data) - 8} bytes", f"whole frames of {2 * levels} bytes")
    frames = np.frombuffer(data, "<i2", offset=8).reshape(-1, levels)
    return CodesDocument(np.ascontiguousarray(frames.T, dtype=np.int32))


def _serialize_mimi(document: CodesDocument) -> bytes:
    if document.codes.size and int(document.codes.max()) > 32767:
        raise CodesFileError("codes", f"{int(document.codes.max())}", "0 .. 32767, which is what .mimi holds")
    return b"MIMI" + struct.pack("<i", document.levels) + document.codes.T.astype("<i2").tobytes()


def _parse_safetensors(data: bytes, subject: str) -> CodesDocument:
    header = read_header(lambda at, size: data[at : at + size], len(data), error=CodesFileError, subject=subject)
    tensor = header.tensors.get("codes")
    if tensor is None or tensor.dtype[0] not in "IU" or len(tensor.shape) != 2:
        found = "no such tensor" if tensor is None else f"{tensor.dtype} {list(tensor.shape)}"
        raise CodesFileError(f"{subject}: codes", found, "an integer tensor [levels, frames]")
    dtype = np.dtype(f"<{tensor.dtype[0].lower()}{int(tensor.dtype[1:]) // 8}")
    payload = data[tensor.offset_bytes : tensor.offset_bytes + tensor.size_bytes]
    codes = _to_int32(np.frombuffer(payload, dtype).reshape(tensor.shape), subject)
    provenance = dict(header.metadata)
    text = provenance.pop("samples", None)
    if text is not None and not (text.isascii() and text.isdigit() and len(text) < 19):
        raise CodesFileError(f"{subject}: samples", repr(text)[:40], "a count of 0 or more")
    return CodesDocument(codes, None if text is None else int(text), provenance)


def _serialize_safetensors(document: CodesDocument) -> bytes:
    array = _narrow(document.codes)
    metadata = dict(document.provenance)
    if document.samples is not None:
        metadata["samples"] = str(document.samples)
    dtype = "U16" if array.dtype.kind == "u" else "I16"
    return build_header([("codes", dtype, array.shape)], metadata) + array.tobytes()


_PARSERS: Final[dict[CodesFormat, Callable[[bytes, str], CodesDocument]]] = {
    "npy": _parse_npy,
    "mimi": _parse_mimi,
    "json": parse_codes_json,
    "safetensors": _parse_safetensors,
}
_SERIALIZERS: Final[dict[CodesFormat, Callable[[CodesDocument], bytes]]] = {
    "npy": _serialize_npy,
    "mimi": _serialize_mimi,
    "json": lambda document: b"".join(codes_json_pieces(document)),
    "safetensors": _serialize_safetensors,
}
