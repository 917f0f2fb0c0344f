"""Codes as JSON, read and written in pieces.

Python's JSON parser keeps the interpreter to itself until it is done. A long document is therefore taken apart first, so that
no step is longer than a few milliseconds and other threads, such as a service's event loop, get their turn in between.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt

from codec_core.codes_document import MOST_CODE, MOST_LEVELS, CodesDocument
from codec_core.errors import CodesFileError

PIECE_CHARS: Final = 1 << 16
"""Longest text that is parsed in one step."""
PIECE_CODES: Final = 1 << 13
"""Most codes that are written in one step."""
MOST_FIELDS: Final = 64
"""Most fields of the object; all but ``codes`` are short."""
_BLANKS: Final = re.compile(r"[ \t\n\r]*")
_DECODER: Final = json.JSONDecoder()
_CUTTING_DECODER: Final = json.JSONDecoder(parse_int=lambda digits: int(digits[:40]))
"""Python converts no integer of thousands of digits. Cut, it is still too large, and is refused by its place."""

Codes = npt.NDArray[np.int32]


def parse_codes_json(data: bytes, subject: str) -> CodesDocument:
    """Read ``{codes[level][frame], levels, frames, samples, provenance}``; all but ``codes`` may be absent.

    Raises:
        CodesFileError: the bytes are no such object; names the field, found and expected.

    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as cause:
        raise _no_object(subject) from cause
    try:
        fields = _Reader(text, subject).object()
    except (ValueError, RecursionError) as cause:
        raise _no_object(subject) from cause
    codes = fields.get("codes")
    if not isinstance(codes, np.ndarray):
        raise CodesFileError(f"{subject}: codes", "no list", "codes[level][frame]")
    for key, count in (("levels", codes.shape[0]), ("frames", codes.shape[1])):
        stated = fields.get(key, count)
        if type(stated) is not int or stated != count:
            raise CodesFileError(f"{subject}: {key}", repr(stated)[:40], f"{count}, as codes has")
    return CodesDocument(codes, _samples_of(fields.get("samples"), subject), _provenance_of(fields.get("provenance"), subject))


def codes_json_pieces(document: CodesDocument) -> Iterator[bytes]:
    """Write a document, piece by piece; joined they are one JSON object."""
    fields: dict[str, Any] = {"levels": document.levels, "frames": document.frames}
    if document.samples is not None:
        fields["samples"] = document.samples
    if document.provenance:
        fields["provenance"] = dict(document.provenance)
    yield (json.dumps(fields, separators=(",", ":"))[:-1] + ',"codes":[').encode()
    for level, row in enumerate(document.codes):
        yield b"[" if level == 0 else b",["
        for first in range(0, len(row), PIECE_CODES):
            text = json.dumps(row[first : first + PIECE_CODES].tolist(), separators=(",", ":"))[1:-1]
            yield ("," * (first > 0) + text).encode()
        yield b"]"
    yield b"]}"


class _Reader:
    """Walks over the outer object and the list of levels; what is in between goes to Python's parser in pieces."""

    def __init__(self, text: str, subject: str) -> None:
        self._text = text
        self._subject = subject
        self._at = 0

    def object(self) -> dict[str, Any]:
        """Read the whole text as one object.

        Raises:
            ValueError: it is none.

        """
        fields: dict[str, Any] = {}
        self._take("{")
        while self._next() != "}":
            if fields:
                self._take(",")
            key = self._short_value()
            if not isinstance(key, str) or key in fields or len(fields) == MOST_FIELDS:
                raise ValueError(key)
            self._take(":")
            fields[key] = self._rows() if key == "codes" and self._next() == "[" else self._short_value()
        self._take("}")
        if self._next():
            raise ValueError(self._at)
        return fields

    def _rows(self) -> Codes:
        rows: list[Codes] = []
        self._take("[")
        while self._next() != "]":
            if rows:
                self._take(",")
            place = f"{self._subject}: codes[{len(rows)}]"
            expected = f"a list of {len(rows[0])} codes like codes[0]" if rows else "a list of codes"
            if self._next() != "[":
                raise CodesFileError(place, type(self._short_value()).__name__, expected)
            if len(rows) == MOST_LEVELS:
                raise CodesFileError(f"{self._subject}: codes", f"more than {MOST_LEVELS} levels", f"1 .. {MOST_LEVELS}")
            rows.append(self._row(place))
            if len(rows[-1]) != len(rows[0]):
                raise CodesFileError(place, f"{len(rows[-1])} frames", expected)
        self._take("]")
        return np.stack(rows) if rows else np.zeros((0, 0), np.int32)

    def _row(self, place: str) -> Codes:
        """Read one level. A row of numbers ends at the first bracket, and may be parted at any comma."""
        self._take("[")
        end = self._text.index("]", self._at)
        parts: list[Codes] = []
        frames, is_last = 0, False
        while not is_last:
            is_last = end - self._at <= PIECE_CHARS
            stop = end if is_last else self._text.rindex(",", self._at, self._at + PIECE_CHARS)
            values = _numbers(self._text[self._at : stop])
            if not values and not (is_last and not parts):
                raise ValueError(self._at)
            parts.append(_checked(values, frames, place))
            frames += len(values)
            self._at = stop + 1
        return np.concatenate(parts)

    def _short_value(self) -> Any:
        self._next()
        window = self._text[self._at : self._at + PIECE_CHARS]
        try:
            value, length = _DECODER.raw_decode(window)
        except json.JSONDecodeError:
            raise
        except ValueError:
            value, length = _CUTTING_DECODER.raw_decode(window)
        self._at += length
        return value

    def _next(self) -> str:
        """Pass over blanks; look at what comes next, empty at the end."""
        blanks = _BLANKS.match(self._text, self._at)
        self._at = blanks.end() if blanks else self._at
        return self._text[self._at : self._at + 1]

    def _take(self, expected: str) -> None:
        if self._next() != expected:
            raise ValueError(self._at)
        self._at += 1


def _numbers(text: str) -> list[Any]:
    try:
        return list(json.loads(f"[{text}]"))
    except json.JSONDecodeError:
        raise
    except ValueError:
        return list(_CUTTING_DECODER.decode(f"[{text}]"))


def _checked(values: list[Any], first: int, place: str) -> Codes:
    if set(map(type, values)) - {int} or (values and not 0 <= min(values) <= max(values) <= MOST_CODE):
        _refuse(values, first, place)
    return np.array(values, np.int32)


def _refuse(values: list[Any], first: int, place: str) -> NoReturn:
    at = next(at for at, code in enumerate(values) if type(code) is not int or not 0 <= code <= MOST_CODE)
    raise CodesFileError(f"{place}[{first + at}]", repr(values[at])[:40], "a code of 0 .. 65535")


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


def _no_object(subject: str) -> CodesFileError:
    return CodesFileError(subject, "bytes that are no JSON object", "a JSON object with codes[level][frame]")
