"""Codes as lines of text, ``frame=0 codes=1049,127,1880``: what command-line codecs print. Read only."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from codec_core.codes_document import MOST_LEVELS, CodesDocument, check_document
from codec_core.errors import CodesFileError

_LINE: Final = re.compile(r"frame=(\d{1,9})\s+codes=(\d{1,5}(?:,\d{1,5})*)\s*\Z")
_MARK: Final = "frame="


def looks_like_codes_text(data: bytes) -> bool:
    """Tell whether a file of any suffix may hold such lines."""
    return _MARK.encode() in data


def parse_codes_text(data: bytes, subject: str = "codes") -> CodesDocument:
    """Read the lines that begin with ``frame=``, counted from 0; other lines, such as a program's log, are passed over.

    Raises:
        CodesFileError: a frame is malformed, missing, out of order, or has another number of codes than the first.

    """
    frames: list[list[int]] = []
    for number, line in enumerate(data.decode("utf-8", errors="replace").splitlines(), start=1):
        if not line.startswith(_MARK):
            continue
        match = _LINE.match(line)
        place = f"{subject}: line {number}"
        if match is None:
            raise CodesFileError(place, repr(line[:40]), "frame=N codes=a,b,...")
        if int(match[1]) != len(frames):
            raise CodesFileError(place, f"frame {match[1]}", f"frame {len(frames)}")
        codes = [int(code) for code in match[2].split(",")]
        if len(codes) > MOST_LEVELS or (frames and len(codes) != len(frames[0])):
            raise CodesFileError(place, f"{len(codes)} codes", f"{len(frames[0]) if frames else f'1 .. {MOST_LEVELS}'}")
        frames.append(codes)
    if not frames:
        raise CodesFileError(subject, "no line of codes", "frame=N codes=a,b,...")
    document = CodesDocument(np.ascontiguousarray(np.array(frames, np.int32).T))
    check_document(document, subject)
    return document
