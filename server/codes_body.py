"""Codes out of a request's body: read, and checked, all of them before any is decoded."""

from __future__ import annotations

import numpy as np

from codec_core.codes_document import CodesDocument
from codec_core.codes_file import parse_codes
from codec_core.errors import CodeRangeError, CodesFileError, SettingError
from server.errors import BodyTooLargeError
from server.media import CodesForm
from server.service import Service

JSON_CODE_BYTES = 8
"""Generous for one code in JSON, spaces included."""
SLACK_BYTES = 65_536


def most_frames(service: Service) -> int:
    """Count the frames of the longest clip that is taken."""
    return service.settings.max_clip_ms // 80


def most_body_bytes(service: Service) -> int:
    """Say how long a body of codes may be: as the longest clip needs it, well below what audio may have."""
    longest = most_frames(service) * service.offer.max_levels * JSON_CODE_BYTES + SLACK_BYTES
    return min(service.settings.max_body_bytes, longest)


def parse_body(service: Service, data: bytes, form: CodesForm, levels: int | None) -> CodesDocument:
    """Read codes from a body.

    Args:
        service: the service.
        data: the body.
        form: how it is laid out.
        levels: levels to decode; ``None`` for as many as the body has, or the model's default for ``raw``, which does not say.

    Raises:
        CodesFileError, CodeRangeError: the body is refused, naming level and frame where it is one code.
        SettingError: more levels asked for than the body has.
        BodyTooLargeError: the clip is longer than one may be.

    """
    offer = service.offer
    document = _raw_codes(data, levels or offer.default_levels) if form == "raw" else parse_codes(data, form, "body")
    if levels is not None and levels > document.levels:
        raise SettingError("levels", found=str(levels), expected=f"at most {document.levels}, as the body has")
    codes = document.codes[:levels]
    if len(codes) > offer.max_levels:
        raise CodesFileError("body: levels", found=str(len(codes)), expected=f"at most {offer.max_levels}, as the model has")
    if document.frames > most_frames(service):
        raise BodyTooLargeError("clip", found="a longer one", expected=f"at most {service.settings.max_clip_ms} ms of audio")
    outside = codes >= offer.codebook_entries
    if outside.any():
        level, frame = np.unravel_index(int(np.argmax(outside)), codes.shape)
        expected = f"0 .. {offer.codebook_entries - 1}"
        raise CodeRangeError(f"codes[level {level}][frame {frame}]", found=str(codes[level, frame]), expected=expected)
    return CodesDocument(codes, document.samples, document.provenance)


def _raw_codes(data: bytes, levels: int) -> CodesDocument:
    if len(data) % (2 * levels):
        expected = f"whole frames of {2 * levels} bytes: u16 of {levels} levels"
        raise CodesFileError("body", found=f"{len(data)} bytes", expected=expected)
    return CodesDocument(np.ascontiguousarray(np.frombuffer(data, "<u2").reshape(-1, levels).T, dtype=np.int32))
