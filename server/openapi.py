"""What ``/docs`` shows of the REST bodies, which the endpoints read as streams and therefore describe here."""

from __future__ import annotations

from typing import Any

from server.access_token import SCOPES
from server.media import AUDIO_IN_MEDIA, CODES_MEDIA, RAW_MEDIA, SOUND_MEDIA
from server.status_map import STATUS_MAP
from server.wire_settings import CHANNELS_MAX, FORMATS, SAMPLE_RATE_RANGE_HZ

_BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
CODES_EXAMPLE: dict[str, Any] = {
    "levels": 2,
    "frames": 3,
    "samples": 5000,
    "provenance": {"model": "default", "numerics": "kyutai"},
    "codes": [[1049, 3, 87], [212, 1990, 5]],
}
ERROR_EXAMPLE: dict[str, Any] = {
    "error": {
        "code": "code_range",
        "reason": STATUS_MAP["code_range"].reason,
        "message": "codes[level 1][frame 0]: found 2048, expected 0 .. 2047",
        "subject": "codes[level 1][frame 0]",
        "found": "2048",
        "expected": "0 .. 2047",
    }
}


def _parameter(name: str, text: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "description": text, "schema": schema}


def _content(media: tuple[str, ...]) -> dict[str, Any]:
    return {one: {"example": CODES_EXAMPLE} if one == "application/json" else _BINARY for one in media}


def _responses(media: tuple[str, ...], refusals: tuple[int, ...]) -> dict[int | str, dict[str, Any]]:
    answers: dict[int | str, dict[str, Any]] = {200: {"description": "The clip.", "content": _content(media)}}
    for status in refusals:
        codes = " or ".join(code for code, answer in STATUS_MAP.items() if answer.http_status == status)
        answers[status] = {"description": f"Refused: {codes}.", "content": {"application/json": {"example": ERROR_EXAMPLE}}}
    return answers


_LEVELS = _parameter(
    "levels", "RVQ levels; absent, the model's default, or what the body has.", {"type": "integer", "minimum": 1}
)
_NUMERICS = _parameter("numerics", "Refuse unless the model runs under these numerics.", {"type": "string"})
_REFUSALS = (400, 401, 403, 406, 408, 413, 415, 422, 503)

TOKEN: dict[str, Any] = {
    "parameters": [
        _parameter("scope", f"What it shall be good for, of {', '.join(SCOPES)}; comma-separated.", {"type": "string"}),
        _parameter("lifetime_ms", "How long; absent, as long as the service allows.", {"type": "integer", "minimum": 1000}),
    ]
}
TOKEN_RESPONSES: dict[int | str, dict[str, Any]] = {}
ENCODE: dict[str, Any] = {
    "parameters": [
        _LEVELS,
        _parameter("format", f"Of {RAW_MEDIA} bodies only.", {"type": "string", "enum": list(FORMATS), "default": FORMATS[0]}),
        _parameter(
            "sample_rate",
            f"Of {RAW_MEDIA} bodies only, Hz.",
            {"type": "integer", "minimum": SAMPLE_RATE_RANGE_HZ[0], "maximum": SAMPLE_RATE_RANGE_HZ[1], "default": 24000},
        ),
        _parameter(
            "channels", f"Of {RAW_MEDIA} bodies only.", {"type": "integer", "minimum": 1, "maximum": CHANNELS_MAX, "default": 1}
        ),
        _NUMERICS,
    ],
    "requestBody": {"required": True, "content": _content(AUDIO_IN_MEDIA)},
}
ENCODE_RESPONSES = _responses(tuple(CODES_MEDIA), _REFUSALS)
DECODE: dict[str, Any] = {
    "parameters": [_LEVELS, _NUMERICS],
    "requestBody": {"required": True, "content": _content(tuple(CODES_MEDIA))},
}
DECODE_RESPONSES = _responses(tuple(SOUND_MEDIA), _REFUSALS)
