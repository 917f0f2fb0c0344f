"""Codes as bytes: what they are with what is known about them, and the four formats they are written in."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from codec_core.errors import CodesFileError
from codec_core.safetensors_file import build_header, read_header

CodesFormat = Literal["npy", "mimi", "json", "safetensors"]
FORMATS: Final[tuple[CodesFormat, ...]] = get_args(CodesFormat)
FRAME_SAMPLES: Final = 1920
"""Samples at 24 kHz that one frame of codes stands for."""
MOST_LEVELS: Final = 1024
"""Most levels any file may have."""


@dataclass(frozen=True)
class CodesDocument:
    """Codes and what is known about them."""

    codes: npt.NDArray[np.int32]
    """[levels, frames], each 0 .. 65535."""
    samples: int | None = None
    """Samples at 24 kHz the codes stand for: frames * 1920 less the padding of the last frame; None where unknown."""
    provenance: Mapping[str, str] = field(default_factory=dict)

    @property
    def levels(self) -> int:
        """Number of RVQ levels."""
        return int(self.codes.shape[0])

    @property
    def frames(self) -> int:
        """Number of frames."""
        return int(self.codes.shape[1])


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


def check_document(document: CodesDocument, subject: str) -> None:
    """Check what holds in every format.

    Raises:
        CodesFileError: dimensions, number of levels, range of codes or sample count are impossible.

    """
    codes = document.codes
    if codes.ndim != 2 or not 1 <= codes.shape[0] <= MOST_LEVELS:
        raise CodesFileError(subject, f"shape {list(codes.shape)}", f"[levels, frames] with 1 .. {MOST_LEVELS} levels")
    outside = (codes < 0) | (codes > 65535)
    if outside.any():
        level, frame = np.unravel_index(int(np.argmax(outside)), codes.shape)
        raise CodesFileError(f"{subject}: level {level}, frame {frame}", f"{codes[level, frame]}", "a code of 0 .. 65535")
    if document.samples is not None:
        most = document.frames * FRAME_SAMPLES
        least = max(0, most - FRAME_SAMPLES + 1)
        if not least <= document.samples <= most:
            raise CodesFileError(
                f"{subject}: samples", f"{document.samples}", f"{least} .. {most} for {document.frames} frames"
            )


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


def _parse_json(data: bytes, subject: str) -> CodesDocument:
    fields = _json_of(data, subject)
    if not isinstance(fields, dict) or not isinstance(fields.get("codes"), list):
        raise CodesFileError(f"{subject}: codes", "no list", "codes[level][frame]")
    rows = fields["codes"]
    frames = len(rows[0]) if rows and isinstance(rows[0], list) else 0
    for level, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != frames:
            found = f"{len(row)} frames" if isinstance(row, list) else type(row).__name__
            raise CodesFileError(f"{subject}: codes[{level}]", found, f"a list of {frames} codes like codes[0]")
        for frame, code in enumerate(row):
            if type(code) is not int or not 0 <= code <= 65535:
                raise CodesFileError(f"{subject}: codes[{level}][{frame}]", repr(code)[:40], "a code of 0 .. 65535")
    for key, count in (("levels", len(rows)), ("frames", frames)):
        stated = fields.get(key, count)
        if type(stated) is not int or stated != count:
            raise CodesFileError(f"{subject}: {key}", repr(fields[key])[:40], f"{count}, as codes has")
    codes = np.array(rows, np.int32).reshape(len(rows), frames)
    return CodesDocument(codes, _samples_of(fields.get("samples"), subject), _provenance_of(fields.get("provenance"), subject))


def _json_of(data: bytes, subject: str) -> Any:
    try:
        try:
            return json.loads(data)
        except (json.JSONDecodeError, UnicodeDecodeError):
            raise
        except ValueError:
            # Python converts no integer of thousands of digits. Cut, it is still too large, and is refused by its place.
            return json.loads(data, parse_int=lambda digits: int(digits[:40]))
    except (ValueError, RecursionError) as cause:
        raise CodesFileError(subject, "bytes that are not JSON", "a JSON object with codes[level][frame]") from cause


def _samples_of(value: object, subject: str) -> int | None:
    if value is None or (type(value) is int and 0 <= value < 1 << 48):
        return value
    raise CodesFileError(f"{subject}: samples", repr(value)[:40], "a count of 0 or more")


def _provenance_of(value: object, subject: str) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise CodesFileError(f"{subject}: provenance", "something else", "an object of strings")
    return value


def _serialize_json(document: CodesDocument) -> bytes:
    fields: dict[str, Any] = {"levels": document.levels, "frames": document.frames}
    if document.samples is not None:
        fields["samples"] = document.samples
    if document.provenance:
        fields["provenance"] = dict(document.provenance)
    fields["codes"] = document.codes.tolist()
    return json.dumps(fields, separators=(",", ":")).encode()


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
    "json": _parse_json,
    "safetensors": _parse_safetensors,
}
_SERIALIZERS: Final[dict[CodesFormat, Callable[[CodesDocument], bytes]]] = {
    "npy": _serialize_npy,
    "mimi": _serialize_mimi,
    "json": _serialize_json,
    "safetensors": _serialize_safetensors,
}
