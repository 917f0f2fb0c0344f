"""What each field of the stream protocol may hold, as JSON schemas; which fields there are, the ``wire`` modules say."""

from __future__ import annotations

from typing import Any, Final

from server.wire import PING_ID_MAX_CHARS
from server.wire_messages import PROTOCOL_VERSION
from server.wire_resume import TOKEN_MAX_CHARS
from server.wire_settings import (
    CHANNELS_MAX,
    CODES_FORMS,
    ECHO_CODES,
    FORMATS,
    MODES,
    OPUS_FORMATS,
    PACES,
    PRE_SKIP_DEFAULT,
    PRE_SKIP_RANGE,
    SAMPLE_RATE_RANGE_HZ,
    STATS,
    STREAM_SETTINGS,
)
from server.wire_talk import SEED_RANGE, TEMPERATURE_RANGE, TOP_K_RANGE

Schema = dict[str, Any]

COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
TEXT: Final[Schema] = {"type": "string"}


def _words(legal: tuple[str, ...]) -> Schema:
    return {"type": "string", "enum": list(legal), "default": legal[0]}


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


_TEMPERATURE: Final[Schema] = {"type": "number", "minimum": 0, "maximum": TEMPERATURE_RANGE[1]}
_TOP_K: Final[Schema] = {"type": "integer", "minimum": TOP_K_RANGE[0], "maximum": TOP_K_RANGE[1]}

SETTING_SCHEMAS: Final[dict[str, Schema]] = {
    "mode": _words(MODES),
    "levels": {"type": "integer", "minimum": 1},
    "format": _words((*FORMATS, *OPUS_FORMATS)),
    "sample_rate": {
        "type": "integer",
        "minimum": SAMPLE_RATE_RANGE_HZ[0],
        "maximum": SAMPLE_RATE_RANGE_HZ[1],
        "default": 24_000,
    },
    "channels": {"type": "integer", "minimum": 1, "maximum": CHANNELS_MAX, "default": 1},
    "codes": _words(CODES_FORMS),
    "echo_codes": _words(ECHO_CODES),
    "numerics": TEXT,
    "pace": _words(PACES),
    "stats": _words(STATS),
    "pre_skip": {
        "type": "integer",
        "minimum": PRE_SKIP_RANGE[0],
        "maximum": PRE_SKIP_RANGE[1],
        "default": PRE_SKIP_DEFAULT,
    },
    "seed": {"type": "integer", "minimum": SEED_RANGE[0], "maximum": SEED_RANGE[1], "default": 0},
    "text_temperature": _TEMPERATURE,
    "text_top_k": _TOP_K,
    "temperature": _TEMPERATURE,
    "top_k": _TOP_K,
}
"""By the name of the setting."""

FIELD_SCHEMAS: Final[dict[str, Schema]] = {
    "codes": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 65_535}},
    "id": {"type": ["string", "integer", "null"], "maxLength": PING_ID_MAX_CHARS},
    "sequence": {"type": "integer", "minimum": 0, "maximum": (1 << 32) - 1},
    "position": COUNT,
    "epoch": COUNT,
    "protocol": {"const": PROTOCOL_VERSION},
    "session": TEXT,
    "model": _object(name=TEXT, sha256=TEXT, weight_class=TEXT, numerics=TEXT),
    "settings": _object(**{name: SETTING_SCHEMAS[name] for name in STREAM_SETTINGS}),
    "codec": _object(sample_rate=COUNT, frame_samples=COUNT, frame_rate={"type": "number"}, codebook_entries=COUNT),
    "language_model": _object(name=TEXT, sha256=TEXT, weight_class=TEXT, user_levels=COUNT, own_levels=COUNT),
    "credit_frames": COUNT,
    "delay_samples": COUNT,
    "limits": {"type": "object", "additionalProperties": COUNT},
    "frames": COUNT,
    "samples": COUNT,
    "padded_samples": COUNT,
    "received_samples": COUNT,
    "sent_samples": COUNT,
    "flushes": COUNT,
    "token": {"type": "string", "minLength": 1, "maxLength": TOKEN_MAX_CHARS},
    "resume_token": {"type": "string", "minLength": 1, "maxLength": TOKEN_MAX_CHARS},
    "last_sequence": {"type": "integer", "minimum": -1, "maximum": (1 << 32) - 1},
    "resumed": {"type": "boolean"},
    "next_sequence": COUNT,
    "resampler": {"type": "string", "enum": ["continued", "reprimed"]},
    "resume_grace_ms": COUNT,
    "checkpoint_interval_ms": COUNT,
    "lag_ms": COUNT,
    "queued_frames": COUNT,
    "real_time_factor": {"type": "number", "minimum": 0},
    "server.text.token": COUNT,
    "text": TEXT,
    "server.warning.code": TEXT,
    "server.goaway.code": TEXT,
    "server.error.code": {"$ref": "#/components/schemas/errorCode"},
    "message": TEXT,
    "time_left_ms": COUNT,
    "reason": TEXT,
    "subject": TEXT,
    "found": TEXT,
    "expected": TEXT,
    "retry_after_ms": COUNT,
}
"""By the name of the field, or by side, message and field where it means something of its own there."""

OPTIONAL_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "ready": (
        "language_model",
        "epoch",
        "position",
        "next_sequence",
        "flushes",
        "resampler",
        "resume_token",
        "resume_grace_ms",
        "checkpoint_interval_ms",
    ),
    "goaway": ("resume_token",),
    "error": ("retry_after_ms",),
}
"""Fields of the service's messages that are not always there, by message."""
