"""The REST description at ``/openapi.json``: bodies, which the endpoints read as streams, refusals, keys, and examples."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from server.access_token import SCOPES
from server.media import AUDIO_IN_MEDIA, CODES_MEDIA, RAW_MEDIA, SOUND_MEDIA
from server.openapi_examples import CODES, ERRORS
from server.openapi_examples import TOKEN as TOKEN_EXAMPLE
from server.status_map import STATUS_MAP
from server.wire_settings import CHANNELS_MAX, FORMATS, SAMPLE_RATE_RANGE_HZ

Schema = dict[str, Any]
Responses = dict[int | str, dict[str, Any]]

JSON_MEDIA: Final = "application/json"
ACCESS_CODES: Final = ("unauthorized", "token_expired", "token_scope")
_PLACE_CODES: Final = ("capacity", "overloaded", "draining")
_BODY_CODES: Final = ("setting", "forbidden_origin", "not_acceptable", "body_timeout", "body_too_large", "unsupported_media")
ENCODE_CODES: Final = (
    *_BODY_CODES,
    *ACCESS_CODES,
    *("payload", "audio_file", "non_finite_input", "numeric_overflow", "not_offered"),
    *_PLACE_CODES,
)
DECODE_CODES: Final = (*_BODY_CODES, *ACCESS_CODES, "codes_file", "code_range", *_PLACE_CODES)
TOKEN_CODES: Final = ("setting", "forbidden_origin", *ACCESS_CODES)

_BINARY: Final[Schema] = {"schema": {"type": "string", "format": "binary"}}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
_TEXT: Final[Schema] = {"type": "string"}


def _object(required: tuple[str, ...], **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


SCHEMAS: Final[dict[str, Schema]] = {
    "Codes": _object(
        ("codes",),
        levels={"type": "integer", "minimum": 1},
        frames=_COUNT,
        samples={**_COUNT, "description": "True length at 24 kHz: frames x 1920 less the padding of the last frame."},
        provenance={"type": "object", "additionalProperties": _TEXT},
        codes={
            "type": "array",
            "description": "codes[level][frame]",
            "items": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 65_535}},
            "minItems": 1,
        },
    ),
    "Token": _object(("token", "scope", "lifetime_ms"), token=_TEXT, scope=_TEXT, lifetime_ms=_COUNT),
    "Error": _object(
        ("error",),
        error=_object(
            ("code", "reason", "message", "subject", "found", "expected"),
            code={"type": "string", "enum": list(STATUS_MAP)},
            **dict.fromkeys(("reason", "message", "subject", "found", "expected"), _TEXT),
            retry_after_ms=_COUNT,
        ),
    ),
}
SECURITY_SCHEMES: Final[dict[str, Schema]] = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    "token": {"type": "apiKey", "in": "query", "name": "token", "description": "A token of POST /v1/token."},
}
_FIGURES: Final[dict[str, Schema]] = {
    "X-Mimi-Levels": {"description": "Levels of the codes.", "schema": _COUNT},
    "X-Mimi-Frames": {"description": "Frames of the codes.", "schema": _COUNT},
    "X-Mimi-Samples": {"description": "True length at 24 kHz, where it is known.", "schema": _COUNT},
}


def describe(app: FastAPI) -> None:
    """Give an application its description: FastAPI's, with our schemas and ways to send a key."""

    def build() -> Schema:
        if app.openapi_schema is None:
            document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
            components = document.setdefault("components", {})
            components.setdefault("schemas", {}).update(SCHEMAS)
            components["securitySchemes"] = SECURITY_SCHEMES
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = build  # type: ignore[method-assign]


def refusals(codes: tuple[str, ...]) -> Responses:
    """Describe the answers of these codes, by status."""
    answers: Responses = {}
    for status in sorted({STATUS_MAP[code].http_status for code in codes}):
        mine = [code for code in codes if STATUS_MAP[code].http_status == status]
        content = {
            "schema": _reference("Error"),
            "examples": {code: {"value": ERRORS[code]} for code in mine if code in ERRORS},
        }
        answers[status] = {
            "description": " ".join(f"{code}: {STATUS_MAP[code].reason}" for code in mine),
            "content": {JSON_MEDIA: content},
        }
        if any("retry_after_ms" in ERRORS.get(code, {"error": {}})["error"] for code in mine):
            answers[status]["headers"] = {"Retry-After": {"description": "Seconds.", "schema": _COUNT}}
    return answers


def _reference(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _parameter(name: str, text: str, schema: Schema) -> Schema:
    return {"name": name, "in": "query", "required": False, "description": text, "schema": schema}


def _content(media: tuple[str, ...]) -> Schema:
    codes = {"schema": _reference("Codes"), "example": CODES}
    return {one: codes if one == JSON_MEDIA else _BINARY for one in media}


def _clip(media: tuple[str, ...]) -> Responses:
    return {200: {"description": "The clip.", "headers": _FIGURES, "content": _content(media)}}


# Without a key of the service's own, the empty way in is enough.
_SECURITY: Final[list[dict[str, list[str]]]] = [{}, {"bearer": []}, {"apiKey": []}, {"token": []}]
_LEVELS: Final = _parameter(
    "levels", "RVQ levels; absent, the model's default, or what the body has.", {"type": "integer", "minimum": 1}
)
_NUMERICS: Final = _parameter("numerics", "Refuse unless the model runs under these numerics.", _TEXT)
_RAW: Final = f"Of {RAW_MEDIA} bodies only"

ENCODE: Final[Schema] = {
    "parameters": [
        _LEVELS,
        _parameter("format", f"{_RAW}.", {"type": "string", "enum": list(FORMATS), "default": FORMATS[0]}),
        _parameter(
            "sample_rate",
            f"{_RAW}, Hz.",
            {"type": "integer", "minimum": SAMPLE_RATE_RANGE_HZ[0], "maximum": SAMPLE_RATE_RANGE_HZ[1], "default": 24000},
        ),
        _parameter("channels", f"{_RAW}.", {"type": "integer", "minimum": 1, "maximum": CHANNELS_MAX, "default": 1}),
        _NUMERICS,
    ],
    "requestBody": {"required": True, "content": _content(AUDIO_IN_MEDIA)},
    "security": _SECURITY,
}
ENCODE_RESPONSES: Final = {**_clip(tuple(CODES_MEDIA)), **refusals(ENCODE_CODES)}
DECODE: Final[Schema] = {
    "parameters": [_LEVELS, _NUMERICS],
    "requestBody": {"required": True, "content": _content(tuple(CODES_MEDIA))},
    "security": _SECURITY,
}
DECODE_RESPONSES: Final = {**_clip(tuple(SOUND_MEDIA)), **refusals(DECODE_CODES)}
TOKEN: Final[Schema] = {
    "parameters": [
        _parameter("scope", f"What it shall be good for, comma-separated: of {', '.join(SCOPES)}; absent, all.", _TEXT),
        _parameter("lifetime_ms", "How long; absent, as long as the service allows.", {"type": "integer", "minimum": 1000}),
    ],
    "security": _SECURITY[:-1],
}
TOKEN_RESPONSES: Final[Responses] = {
    200: {"description": "The token.", "content": {JSON_MEDIA: {"schema": _reference("Token"), "example": TOKEN_EXAMPLE}}},
    **refusals(TOKEN_CODES),
}
INFO: Final[Schema] = {"security": _SECURITY}
INFO_RESPONSES: Final = refusals(ACCESS_CODES)
