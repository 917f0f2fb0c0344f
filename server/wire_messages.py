"""What the server sends under ``mimi.v1``, sans-IO: the header of binary messages and the fields of text messages.

Standard library only. ``docs/protocol.md`` is the normative text; a test holds the two together.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import NamedTuple

from codec_core.errors import CodecError
from server.errors import PayloadError
from server.status_map import error_fields

PROTOCOL_VERSION = 1
SUBPROTOCOL = "mimi.v1"
HEADER = struct.Struct("<BBHIQ")
"""Of every binary message from the server: version, kind, levels or channels, sequence, position. Little-endian, 16 bytes."""
KIND_CODES = 1
KIND_PCM = 2
KIND_OPUS = 3

SERVER_MESSAGES: dict[str, tuple[str, ...]] = {
    "ready": (
        "protocol",
        "session",
        "model",
        "settings",
        "codec",
        "language_model",
        "credit_frames",
        "delay_samples",
        "limits",
        "resumed",
        "epoch",
        "position",
        "next_sequence",
        "flushes",
        "resampler",
        "resume_token",
        "resume_grace_ms",
        "checkpoint_interval_ms",
    ),
    "codes": ("sequence", "position", "codes"),
    "text": ("sequence", "position", "token", "text"),
    "flushed": ("frames", "position", "samples", "padded_samples", "received_samples", "sent_samples", "flushes"),
    "reset_done": ("epoch",),
    "pong": ("id",),
    "warning": ("code", "message"),
    "checkpoint": ("epoch", "position", "sequence"),
    "stats": ("lag_ms", "queued_frames", "real_time_factor"),
    "goaway": ("code", "time_left_ms", "resume_token"),
    "error": ("code", "reason", "message", "subject", "found", "expected", "retry_after_ms"),
}


class FrameHeader(NamedTuple):
    """The header of a binary message from the server."""

    version: int
    kind: int
    width: int
    """Levels of codes, channels of PCM, samples of audio at 48 kHz that Opus adds."""
    sequence: int
    position: int


def pack_frame(kind: int, width: int, sequence: int, position: int, payload: bytes) -> bytes:
    """Make a binary message: header, then ``u16[levels]``, samples or Opus."""
    return HEADER.pack(PROTOCOL_VERSION, kind, width, sequence, position) + payload


def pack_codes(sequence: int, position: int, codes: Sequence[int]) -> bytes:
    """Make the binary message of one frame of codes."""
    return pack_frame(KIND_CODES, len(codes), sequence, position, struct.pack(f"<{len(codes)}H", *codes))


def unpack_frame(message: bytes) -> tuple[FrameHeader, bytes]:
    """Undo :func:`pack_frame`, on the client's side: header and payload.

    Raises:
        PayloadError: shorter than a header, or of another version.

    """
    if len(message) < HEADER.size:
        raise PayloadError("frame", found=f"{len(message)} bytes", expected=f"a header of {HEADER.size}")
    header = FrameHeader(*HEADER.unpack_from(message))
    if header.version != PROTOCOL_VERSION:
        raise PayloadError("frame.version", found=str(header.version), expected=str(PROTOCOL_VERSION))
    return header, message[HEADER.size :]


def server_text(kind: str, **fields: object) -> str:
    """Make a text message; its fields are those :data:`SERVER_MESSAGES` lists for ``kind``."""
    unlisted = set(fields) - set(SERVER_MESSAGES[kind])
    if unlisted:
        raise ValueError(f"{kind} has no field {sorted(unlisted)}")
    return json.dumps({"type": kind, **fields}, separators=(",", ":"), allow_nan=False)


def error_text(error: CodecError) -> str:
    """Make the ``error`` message that goes out before the close frame."""
    return server_text("error", **error_fields(error))
