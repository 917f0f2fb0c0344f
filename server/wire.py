"""The stream protocol ``mimi.v1``, sans-IO: bytes and text in, events out; no sockets, no asyncio, standard library only.

:class:`ServerWire` turns what a client sends into events and refuses what is malformed, unknown or illegal now; what the server
sends is made by :mod:`server.wire_messages`. ``docs/protocol.md`` is the normative text; a test holds them together.
"""

from __future__ import annotations

import enum
import json
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from codec_core.errors import CodeRangeError
from server.errors import MessageTooBigError, PayloadError, ProtocolError, WrongKindError
from server.wire_opus import OpusIn, OpusPlace, Packets
from server.wire_resume import RESUME_FIELDS, RESUME_PARAMETERS, Resume, parse_resume, parse_resume_query, sequence_number
from server.wire_settings import STREAM_SETTINGS, Offer, StreamSettings, parse_settings, quoted, unique_fields

PING_ID_MAX_CHARS = 64


class Phase(enum.Enum):
    """Where a session stands."""

    AWAITING_HELLO = "awaiting hello"
    OPEN = "open"
    CLOSED = "closed"


class ClientMessage(NamedTuple):
    """What one text message from the client may hold, and when it is legal."""

    required: tuple[str, ...]
    optional: tuple[str, ...]
    legal_in: Phase


CLIENT_MESSAGES: dict[str, ClientMessage] = {
    "hello": ClientMessage((), STREAM_SETTINGS, Phase.AWAITING_HELLO),
    "resume": ClientMessage(*RESUME_FIELDS, Phase.AWAITING_HELLO),
    "codes": ClientMessage(("codes",), (), Phase.OPEN),
    "flush": ClientMessage((), (), Phase.OPEN),
    "reset": ClientMessage((), (), Phase.OPEN),
    "ping": ClientMessage((), ("id",), Phase.OPEN),
    "ack": ClientMessage(("sequence",), ("epoch",), Phase.OPEN),
    "close": ClientMessage((), (), Phase.OPEN),
}


@dataclass(frozen=True)
class Hello:
    """The client's settings, checked."""

    settings: StreamSettings


@dataclass(frozen=True)
class Audio:
    """PCM bytes of any length in the agreed format; a sample may be split over two messages."""

    data: bytes


@dataclass(frozen=True)
class Codes:
    """Whole frames of codes, each in range."""

    frames: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Flush:
    """Pad the tail to a frame, answer what is owed, then say ``flushed``."""


@dataclass(frozen=True)
class Reset:
    """Start over, as if new."""


@dataclass(frozen=True)
class Ping:
    """To be answered by ``pong`` in its turn."""

    id: str | int | None


@dataclass(frozen=True)
class Ack:
    """The client holds every frame up to and including ``sequence`` of ``epoch``, which is the present one if ``None``."""

    sequence: int
    epoch: int | None = None


@dataclass(frozen=True)
class Close:
    """End the session once everything before it is answered."""


Event = Hello | Resume | Audio | Packets | Codes | Flush | Reset | Ping | Ack | Close


class ServerWire:
    """The server's end of one session: what the client sent becomes events, in a state that only goes forward.

    Args:
        offer: what the loaded model allows.
        max_message_bytes: the most one message may hold.

    """

    def __init__(self, offer: Offer, max_message_bytes: int) -> None:
        self._offer = offer
        self._max_message_bytes = max_message_bytes
        self.phase = Phase.AWAITING_HELLO
        self.settings: StreamSettings | None = None
        self._opus: OpusIn | None = None

    def receive_query(self, pairs: Iterable[tuple[str, str]]) -> Hello | Resume | None:
        """Take the query string: settings, or what a resume needs; ``None`` where it is empty, so that a message is due."""
        fields = unique_fields(pairs)
        if RESUME_PARAMETERS[0] in fields:
            return parse_resume_query(fields)
        return self._agree(fields, from_text=True) if fields else None

    def go_on(self, settings: StreamSettings, place: OpusPlace | None = None) -> None:
        """Open the session with the settings of the stream that a :class:`Resume` named, and with its place in Opus."""
        self.settings = settings
        self._opus = OpusIn(settings, place) if settings.is_opus and settings.mode != "decode" else None
        self.phase = Phase.OPEN

    def receive_text(self, text: str) -> Event:
        """Take one text message.

        Raises:
            MessageTooBigError, ProtocolError, NotOfferedError, WrongKindError: as the message deserves.
            SettingError, CodeRangeError: from ``hello`` and ``codes``.

        """
        self._check_size(len(text.encode("utf-8", "surrogatepass")))
        fields = _parse_object(text)
        kind = fields.pop("type", None)
        if not isinstance(kind, str):
            raise ProtocolError("type", found=quoted(kind), expected=" | ".join(CLIENT_MESSAGES))
        self._check_legal(kind, fields)
        match kind:
            case "hello" | "resume":
                return self._agree(fields, from_text=False) if kind == "hello" else parse_resume(fields)
            case "codes":
                return Codes((self._json_codes(fields["codes"]),))
            case "ping":
                return Ping(_ping_id(fields.get("id")))
            case "ack":
                epoch = sequence_number("ack.epoch", fields["epoch"]) if "epoch" in fields else None
                return Ack(sequence_number("ack.sequence", fields["sequence"]), epoch)
            case "close":
                self.phase = Phase.CLOSED
                return Close()
        if self._opus is not None:
            (self._opus.flush if kind == "flush" else self._opus.reset)()
        return Flush() if kind == "flush" else Reset()

    def receive_binary(self, data: bytes) -> Audio | Packets | Codes:
        """Take one binary message: PCM or Opus, or in decode mode whole frames of little-endian u16 codes.

        Raises:
            MessageTooBigError, ProtocolError, WrongKindError, PayloadError, CodeRangeError, OpusDataError: as the message
                deserves.

        """
        self._check_size(len(data))
        if self.phase is not Phase.OPEN or self.settings is None:
            _illegal("binary message", self.phase)
        if self.settings.mode != "decode":
            return Audio(data) if self._opus is None else self._opus.take(data)
        if self.settings.codes == "json":
            raise WrongKindError("codes", found="a binary message", expected="text: this session asked for codes=json")
        return self._binary_codes(data, self.settings.levels)

    def _agree(self, fields: Mapping[str, object], *, from_text: bool) -> Hello:
        settings = parse_settings(fields, self._offer, from_text=from_text)
        self.go_on(settings)
        return Hello(settings)

    def _check_size(self, size_bytes: int) -> None:
        if size_bytes > self._max_message_bytes:
            raise MessageTooBigError("message", found=f"{size_bytes} bytes", expected=f"at most {self._max_message_bytes}")

    def _check_legal(self, kind: str, fields: Mapping[str, object]) -> None:
        spec = CLIENT_MESSAGES.get(kind)
        if spec is None:
            raise ProtocolError("type", found=quoted(kind), expected=" | ".join(CLIENT_MESSAGES))
        if self.phase is not spec.legal_in:
            _illegal(kind, self.phase)
        if kind == "hello":
            return
        for name in spec.required:
            if name not in fields:
                raise ProtocolError(f"{kind}.{name}", found="nothing", expected="the field")
        for name in fields:
            if name not in spec.required + spec.optional:
                legal = " | ".join(("type", *spec.required, *spec.optional))
                raise ProtocolError(f"{kind}.{quoted(name)}", found="an unknown field", expected=legal)

    def _json_codes(self, value: object) -> tuple[int, ...]:
        settings = self.settings
        if settings is None or settings.mode != "decode" or settings.codes != "json":
            raise WrongKindError("codes", found="a text message", expected="mode=decode and codes=json")
        if not isinstance(value, list) or len(value) != settings.levels:
            raise PayloadError("codes.codes", found=quoted(value), expected=f"an array of {settings.levels} codes")
        for level, code in enumerate(value):
            if not isinstance(code, int) or isinstance(code, bool):
                raise PayloadError(f"codes.codes[level {level}]", found=quoted(code), expected="a whole number")
        return self._checked_frame(tuple(value), 0)

    def _binary_codes(self, data: bytes, levels: int) -> Codes:
        frame_bytes = 2 * levels
        if len(data) % frame_bytes:
            expected = f"a multiple of {frame_bytes}: u16 of {levels} levels"
            raise PayloadError("codes", found=f"{len(data)} bytes", expected=expected)
        frames = struct.iter_unpack(f"<{levels}H", data)
        return Codes(tuple(self._checked_frame(frame, index) for index, frame in enumerate(frames)))

    def _checked_frame(self, frame: tuple[int, ...], index: int) -> tuple[int, ...]:
        entries = self._offer.codebook_entries
        if min(frame) < 0 or max(frame) >= entries:
            level = next(level for level, code in enumerate(frame) if not 0 <= code < entries)
            where = f"codes[frame {index}][level {level}]"
            raise CodeRangeError(where, found=quoted(frame[level]), expected=f"0 .. {entries - 1}")
        return frame


def _parse_object(text: str) -> dict[str, object]:
    try:
        value = json.loads(text, object_pairs_hook=_unique_object, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as cause:
        raise ProtocolError("text message", found="malformed JSON", expected="one JSON object") from cause
    if not isinstance(value, dict):
        raise ProtocolError("text message", found=quoted(value), expected="one JSON object")
    return value


def _unique_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ProtocolError("text message", found="a name twice in one object", expected="once")
    return fields


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _ping_id(value: object) -> str | int | None:
    if value is None or (isinstance(value, str) and len(value) <= PING_ID_MAX_CHARS):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 53:
        return value
    raise ProtocolError("ping.id", found=quoted(value), expected=f"a whole number, or text of at most {PING_ID_MAX_CHARS}")


def _illegal(what: str, phase: Phase) -> NoReturn:
    legal = [kind for kind, message in CLIENT_MESSAGES.items() if message.legal_in is phase]
    if phase is Phase.OPEN:
        legal.insert(0, "binary message")
    raise ProtocolError(what, found=f"in state '{phase.value}'", expected=" | ".join(legal) or "nothing more")
