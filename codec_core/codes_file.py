"""Codes in files and in messages: ``.npy``, ``.mimi``, ``.json`` and ``.safetensors``.

============ ========================================================================= =====================================
format       layout                                                                    keeps besides the codes
============ ========================================================================= =====================================
npy          NumPy array [levels, frames], int16 (uint16 where a code needs it)         nothing
mimi         "MIMI", i32 levels, then i16 [frame][level], little-endian                 nothing
json         ``{levels, frames, codes[level][frame], samples, provenance}``             true sample count, provenance
safetensors  tensor ``codes`` I16 (U16) [levels, frames], metadata strings              true sample count, provenance
============ ========================================================================= =====================================

The sample count tells how much of the last frame is padding. Provenance is a flat mapping of strings: which model, which
numerics, which program.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from codec_core.atomic_file import atomic_output
from codec_core.codes_document import CodesDocument
from codec_core.codes_formats import FORMATS, CodesFormat, parse_codes, serialize_codes
from codec_core.errors import CodesFileError

__all__ = [
    "FILE_CAP_BYTES",
    "FORMATS",
    "CodesDocument",
    "CodesFormat",
    "format_of",
    "parse_codes",
    "read_codes",
    "read_codes_from_input",
    "read_limited",
    "require_levels",
    "serialize_codes",
    "write_codes",
]

FILE_CAP_BYTES: Final = 1 << 30
"""Largest file that is read: 48 hours at 32 levels in the binary formats."""


def format_of(path: str | os.PathLike[str]) -> CodesFormat:
    """Tell the format by a path's suffix.

    Raises:
        CodesFileError: the suffix is none of ours.

    """
    suffix = Path(path).suffix.lower().removeprefix(".")
    for name in FORMATS:
        if suffix == name:
            return name
    raise CodesFileError(str(path), f"the suffix {Path(path).suffix!r}", " or ".join(f".{name}" for name in FORMATS))


def read_codes(path: str | os.PathLike[str]) -> CodesDocument:
    """Read a file of codes in the format of its suffix.

    Raises:
        CodesFileError: it cannot be read, is larger than :data:`FILE_CAP_BYTES`, or is not what its suffix says.

    """
    form = format_of(path)
    return parse_codes(read_limited(path), form, subject=str(path))


def read_limited(path: str | os.PathLike[str]) -> bytes:
    """Read a whole file of codes, whatever its format.

    Raises:
        CodesFileError: it cannot be read, or is larger than :data:`FILE_CAP_BYTES`.

    """
    try:
        # Never blocks on a pipe: what is not a regular file has no size to trust.
        if not Path(path).is_file():
            found = "no regular file" if Path(path).exists() else "no such file"
            raise CodesFileError(str(path), found, "a file of codes")
        with Path(path).open("rb") as file:
            data = file.read(FILE_CAP_BYTES + 1)
    except OSError as cause:
        raise CodesFileError(str(path), f"{cause.strerror}", "a file that can be read") from cause
    if len(data) > FILE_CAP_BYTES:
        raise CodesFileError(str(path), f"more than {FILE_CAP_BYTES} bytes", "a smaller file")
    return data


def read_codes_from_input(form: CodesFormat) -> CodesDocument:
    """Read codes from standard input.

    Raises:
        CodesFileError: there are more than :data:`FILE_CAP_BYTES`, or they are not of that format.

    """
    subject = "standard input"
    data = sys.stdin.buffer.read(FILE_CAP_BYTES + 1)
    if len(data) > FILE_CAP_BYTES:
        raise CodesFileError(subject, f"more than {FILE_CAP_BYTES} bytes", "fewer")
    return parse_codes(data, form, subject)


def require_levels(document: CodesDocument, levels: int, subject: str) -> None:
    """Refuse codes of more levels than a model has.

    Args:
        document: the codes.
        levels: how many the model has.
        subject: what to call the codes in the error.

    Raises:
        CodesFileError: there are more; says so where the array looks transposed.

    """
    if document.levels <= levels:
        return
    expected = f"1 .. {levels}, the levels of the model"
    if document.frames <= levels:
        expected += "; the layout is [levels, frames], and this array may be transposed"
    raise CodesFileError(f"{subject}: levels", f"{document.levels}", expected)


def write_codes(path: str | os.PathLike[str], document: CodesDocument) -> None:
    """Write a file of codes in the format of its suffix, whole or not at all; an existing file is replaced.

    Raises:
        CodesFileError: an unknown suffix, a path that cannot be written, or a code the format cannot hold.

    """
    data = serialize_codes(document, format_of(path))
    with atomic_output(path, replace=True, error=CodesFileError) as temporary:
        temporary.write_bytes(data)
