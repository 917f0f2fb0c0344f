"""Answers that the REST description shows; a test gets each of them from a running service with the embedded model."""

from __future__ import annotations

from typing import Any, Final

from codec_core import __version__
from codec_core.errors import (
    AudioFileError,
    CodecError,
    CodeRangeError,
    CodesFileError,
    NonFiniteInputError,
    NumericOverflowError,
    SettingError,
)
from server import api_keys
from server.errors import (
    BodyTimeoutError,
    BodyTooLargeError,
    CapacityError,
    DrainingError,
    ForbiddenOriginError,
    NotAcceptableError,
    NotOfferedError,
    PayloadError,
    TokenExpiredError,
    TokenScopeError,
    UnauthorizedError,
    UnsupportedMediaError,
)
from server.media import CODES_MEDIA
from server.status_map import error_fields
from server.wire_settings import FORMATS

CODES: Final[dict[str, Any]] = {
    "levels": 2,
    "frames": 3,
    "samples": 5000,
    "provenance": {
        "model": "mimi-mini",
        "model_sha256": "711d8be6de518ccab3ed5835167841965b9ca087ed4e5fa098e3bf8fb0383a54",
        "weight_class": "f16",
        "numerics": "kyutai",
        "software": f"mimi-server {__version__}",
    },
    "codes": [[685, 434, 393], [15, 664, 664]],
}
"""5,000 samples of silence at two levels."""
TOKEN: Final[dict[str, Any]] = {
    "token": "1.eyJzY29wZSI6WyJzdHJlYW0iXSwiZXhwaXJlc19tcyI6MTc5NjA0MDAwMDAwMCwia2V5IjoiIn0.hKY3sL7Q",
    "scope": "stream",
    "lifetime_ms": 60000,
}

_ERRORS: Final[tuple[CodecError, ...]] = (
    SettingError("levels", "99", "a whole number from 1 to 32"),
    PayloadError("audio", "1 bytes of a split sample at the end", "whole samples"),
    UnauthorizedError("key", "none", api_keys.EXPECTED),
    TokenExpiredError("token", "one that expired 1 ms ago", "a new one of POST /v1/token"),
    TokenScopeError("token", "scope stream", "scope convert"),
    ForbiddenOriginError("Origin", "'http://other.example'", "the service's own, or one on the allow-list"),
    NotAcceptableError("Accept", "'text/html'", " | ".join(CODES_MEDIA)),
    BodyTimeoutError("body", "100 bytes", "all of it within 60000 ms"),
    BodyTooLargeError("body", "a larger one", "at most 67108864 bytes"),
    UnsupportedMediaError("Content-Encoding", "'gzip'", "identity"),
    CodeRangeError("codes[level 1][frame 0]", "1024", "0 .. 1023"),
    CodesFileError("body: codes[1]", "2 frames", "a list of 1 codes like codes[0]"),
    AudioFileError("body", "an empty file", "an audio file"),
    NonFiniteInputError("sample 1234, channel 0", "nan", "a finite number"),
    NumericOverflowError("frame 0: state", "a value that is not finite", "input within about -1 .. 1"),
    NotOfferedError("format", "'opus'", f"{' | '.join(FORMATS)}, or a body of audio/ogg"),
    CapacityError("conversions", "4 of 4 places taken", "a free place", retry_after_ms=2000),
    DrainingError("service", "one that is going down", "one that takes new work", retry_after_ms=2000),
)
ERRORS: Final[dict[str, dict[str, Any]]] = {error.code: {"error": error_fields(error)} for error in _ERRORS}
"""A body of each code that REST refuses clips with."""
