"""What a service sends under ``mimi.v1``, as typed events. Sans-IO; nothing that arrives is trusted.

``docs/protocol.md`` is the normative text. Messages of types that this client does not know are passed over, so that a later
service may say more; those it knows must have the fields it needs.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from codec_core.client.errors import refusal
from codec_core.client.settings import DTYPES, OPUS_FORMATS, SampleFormat
from codec_core.errors import CodecError, UnavailableError

PROTOCOL_VERSION: Final = 1
SUBPROTOCOL: Final = "mimi.v1"
HEADER: Final = struct.Struct("<BBHIQ")
KIND_CODES: Final = 1
KIND_PCM: Final = 2
KIND_OPUS: Final = 3
_LARGEST: Final = 1 << 53
_RESUME_COUNTS: Final = ("resume_grace_ms", "checkpoint_interval_ms", "epoch", "position", "flushes")
_QUOTED_MAX_CHARS: Final = 64


@dataclass(frozen=True)
class Frame:
    """One answer: a frame's codes, or audio, or in mode ``talk`` text."""

    sequence: int
    """Counts answers from 0, without a gap; starts again at a reset."""
    position: int
    """First sample of the frame, at 24 kHz."""
    codes: npt.NDArray[np.int32] | None = None
    """[levels], where the answer is codes."""
    pcm: npt.NDArray[np.float32] | None = None
    """[n], full scale -1 .. 1, at the stream's rate, where the answer is audio."""
    opus: tuple[bytes, int] | None = None
    """Opus as it came, and the samples of audio that it adds, at 48 kHz; ``pcm`` is made of it."""
    token: int | None = None
    """Id of the text token, where the answer is text; most say nothing."""
    text: str | None = None
    """What the token adds to the text, where the answer is text; often nothing."""
    latency_ms: float | None = None
    """From sending the last input of the frame until now; ``None`` where the frame was sent again after a resume."""


@dataclass(frozen=True)
class Ready:
    """The settings are agreed, or the stream is resumed."""

    session: str
    model: Mapping[str, Any]
    """``name``, ``sha256``, ``weight_class``, ``numerics``."""
    settings: Mapping[str, Any]
    """All settings, filled in by the service."""
    levels: int
    """Of the codes of the stream; in mode ``talk`` of those that the model hears."""
    sample_rate_hz: int
    """Of the codec."""
    frame_samples: int
    codebook_entries: int
    credit_frames: int
    max_message_bytes: int
    resumed: bool = False
    resume_token: str | None = None
    resume_grace_ms: int = 0
    checkpoint_interval_ms: int = 0
    epoch: int = 0
    position: int = 0
    """Input of the epoch that the service holds, in samples at the client's rate or frames of codes."""
    flushes: int = 0
    """Flushes of the epoch that the service has done."""
    language_model: Mapping[str, Any] | None = None
    """Of mode ``talk``: ``name``, ``sha256``, ``weight_class``, ``user_levels``, ``own_levels``."""
    resampler: str | None = None
    """After a resume with resampled input: ``continued``, or ``reprimed`` where the codes may differ for a moment."""


@dataclass(frozen=True)
class Flushed:
    """A flush is done; counts are since the start or the last reset."""

    frames: int
    samples: int
    """True length at 24 kHz, padding left out."""
    padded_samples: int
    received_samples: int
    sent_samples: int
    flushes: int
    """Flushes so far, this one included."""


@dataclass(frozen=True)
class ResetDone:
    """A reset is done; ``epoch`` counts them."""

    epoch: int


@dataclass(frozen=True)
class Checkpoint:
    """Input before ``position`` is safe even if the service crashes."""

    position: int
    epoch: int


@dataclass(frozen=True)
class Warned:
    """Something to know: ``lagging``, ``clipping``."""

    code: str
    message: str


@dataclass(frozen=True)
class GoAway:
    """The service goes down in so many milliseconds."""

    time_left_ms: int
    resume_token: str | None


@dataclass(frozen=True)
class Refused:
    """The stream is refused; a close frame follows."""

    error: CodecError


Event = Frame | Ready | Flushed | ResetDone | Checkpoint | Warned | GoAway | Refused


def parse_text(text: str) -> Event | None:
    """Read a text message; ``None`` for a type that is not known or needs no answer.

    Raises:
        UnavailableError: it is not what ``mimi.v1`` says.

    """
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as cause:
        raise _foreign("text message", text) from cause
    if not isinstance(fields, dict):
        raise _foreign("text message", text)
    parse = _PARSERS.get(str(fields.get("type")))
    return None if parse is None else parse(fields)


def parse_binary(message: bytes, sample_format: SampleFormat) -> Frame:
    """Read a binary message.

    Raises:
        UnavailableError: it is not what ``mimi.v1`` says.

    """
    if len(message) < HEADER.size:
        raise _foreign("frame", f"{len(message)} bytes")
    version, kind, width, sequence, position = HEADER.unpack_from(message)
    payload = memoryview(message)[HEADER.size :]
    if version != PROTOCOL_VERSION:
        raise _foreign("frame.version", str(version))
    if kind == KIND_CODES and len(payload) == 2 * width:
        return Frame(sequence, position, codes=np.frombuffer(payload, "<u2").astype(np.int32))
    if kind == KIND_OPUS and sample_format in OPUS_FORMATS:
        return Frame(sequence, position, opus=(bytes(payload), width))
    dtype = DTYPES.get(sample_format)
    if kind == KIND_PCM and width == 1 and dtype is not None and len(payload) % dtype.itemsize == 0:
        samples: npt.NDArray[Any] = np.frombuffer(payload, dtype)
        scale = np.float32(1 / 32768 if sample_format == "s16le" else 1)
        return Frame(sequence, position, pcm=samples.astype(np.float32) * scale)
    raise _foreign("frame", f"kind {kind}, width {width}, {len(payload)} bytes")


def _ready(fields: Mapping[str, Any]) -> Ready:
    settings, codec, limits, model = (_object(fields, name) for name in ("settings", "codec", "limits", "model"))
    token, resampler, language = (fields.get(name) for name in ("resume_token", "resampler", "language_model"))
    return Ready(
        session=str(fields.get("session")),
        model=model,
        settings=settings,
        levels=_whole(settings, "levels", 1),
        sample_rate_hz=_whole(codec, "sample_rate", 1),
        frame_samples=_whole(codec, "frame_samples", 1),
        codebook_entries=_whole(codec, "codebook_entries", 1),
        credit_frames=_whole(fields, "credit_frames", 1),
        max_message_bytes=_whole(limits, "max_message_bytes", 1),
        resumed=fields.get("resumed") is True,
        resume_token=token if isinstance(token, str) else None,
        resampler=resampler if isinstance(resampler, str) else None,
        language_model=language if isinstance(language, dict) else None,
        **{name: _whole(fields, name) for name in _RESUME_COUNTS if name in fields},
    )


def _flushed(fields: Mapping[str, Any]) -> Flushed:
    names = ("frames", "samples", "padded_samples", "received_samples", "sent_samples", "flushes")
    return Flushed(*(_whole(fields, name) for name in names))


def _text(fields: Mapping[str, Any]) -> Frame:
    text = fields.get("text")
    if not isinstance(text, str):
        raise _foreign("text", repr(text))
    return Frame(_whole(fields, "sequence"), _whole(fields, "position"), token=_whole(fields, "token"), text=text)


def _checkpoint(fields: Mapping[str, Any]) -> Checkpoint:
    return Checkpoint(_whole(fields, "position"), _whole(fields, "epoch"))


def _go_away(fields: Mapping[str, Any]) -> GoAway:
    token = fields.get("resume_token")
    return GoAway(_whole(fields, "time_left_ms"), token if isinstance(token, str) else None)


def _object(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = fields.get(name)
    if not isinstance(value, dict):
        raise _foreign(name, repr(value))
    return value


def _whole(fields: Mapping[str, Any], name: str, least: int = 0) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < _LARGEST:
        raise _foreign(name, repr(value))
    return value


def _foreign(subject: str, found: str) -> UnavailableError:
    return UnavailableError(f"service: {subject}", ascii(found)[:_QUOTED_MAX_CHARS], "a message of mimi.v1")


_PARSERS: Final[Mapping[str, Callable[[Mapping[str, Any]], Event]]] = {
    "ready": _ready,
    "text": _text,
    "flushed": _flushed,
    "checkpoint": _checkpoint,
    "goaway": _go_away,
    "reset_done": lambda fields: ResetDone(_whole(fields, "epoch")),
    "warning": lambda fields: Warned(str(fields.get("code")), str(fields.get("message"))),
    "error": lambda fields: Refused(refusal(fields)),
}
