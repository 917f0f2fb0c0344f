"""Snapshots of whole streams: what a replica needs to go on with one that it has never seen.

Little-endian, version 1::

    8 bytes   "MIMISTRM"
    u32       version
    u32       bytes of the facts
    u64[6]    bytes of each section
    u8[]      facts: JSON, identity, settings and counters
    u8[]      sections: encoder, decoder (snapshots of codec_core), pending, intake, outlet (f32[]), answers
    32 bytes  HMAC-SHA256

A stream of mode ``talk`` has version 2: one more section, the language model's snapshot, and one more fact, the bytes of a
letter that is not complete. Others stay what they were, so that a service which knows no such mode goes on with them.

The HMAC covers header, facts, answers and samples, and of codec_core's snapshots the sha256 at their end, against which the
library checks them: megabytes are hashed once. Sizes are checked before anything is read, the HMAC before anything is parsed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import struct
from collections.abc import Iterator
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any, Final, TypeVar, cast

import numpy as np
import numpy.typing as npt

from codec_core.errors import CodecError, SnapshotError
from server.replay_window import NOTHING, Answer
from server.resampling import ResamplerState
from server.snapshot_store import checked_stream_id
from server.stream_state import StreamCounters, StreamState
from server.wire_settings import Offer, StreamSettings, parse_settings, quoted
from server.wire_talk import SAMPLING_SETTINGS

_MAGIC: Final = b"MIMISTRM"
_START: Final = struct.Struct("<8sI")
_HEADER: Final = struct.Struct("<8sII6Q")
_HEADERS: Final = {1: _HEADER, 2: struct.Struct("<8sII7Q")}
"""By version."""
_MODEL_SECTIONS: Final = (0, 1, 6)
"""Encoder, decoder and language model."""
_ANSWER: Final = struct.Struct("<BIqI")
_BETWEEN: Final = -2
"""Stands for the sequence of an answer that has none."""
_DIGEST_BYTES: Final = 32
_FACTS_MAX_BYTES: Final = 65_536
_MOST_TEXT_BYTES: Final = 3
_LARGEST: Final = 1 << 63

Made = TypeVar("Made")


@dataclass
class Lineage:
    """Which stream this is, and whose turn it is to carry it.

    ``generation`` counts the connections that the stream was given to; tokens of an older one than ``oldest_generation`` are
    no longer good. ``opened_unix_s`` is when the stream was opened.
    """

    stream_id: str
    opened_unix_s: float
    generation: int = 0
    oldest_generation: int = 0


@dataclass(frozen=True)
class StreamSnapshot:
    """One stream between two of its frames, with the answers that its client may not have."""

    lineage: Lineage
    state: StreamState
    answers: list[Answer] = field(default_factory=list)
    freed: tuple[int, int] = (0, NOTHING)


def pack_stream(snapshot: StreamSnapshot, model_sha256: str, key: bytes) -> list[bytes]:
    """Make the snapshot's bytes, in pieces to be written one after the other."""
    state, talks = snapshot.state, snapshot.state.settings.mode == "talk"
    facts: dict[str, Any] = {
        "lineage": asdict(snapshot.lineage),
        "model_sha256": model_sha256,
        "settings": {name: value for name, value in asdict(state.settings).items() if talks or name not in SAMPLING_SETTINGS},
        "counters": asdict(state.counters),
        "intake": [state.intake.first_sample, state.intake.taken_samples],
        "outlet": [state.outlet.first_sample, state.outlet.taken_samples],
        "freed": list(snapshot.freed),
    }
    if talks:
        facts["text_pending"] = state.text_pending.hex()
    text = json.dumps(facts, separators=(",", ":")).encode()
    samples = (state.pending, state.intake.heard, state.outlet.heard)
    sections = [state.encoder, state.decoder, *(one.astype("<f4").tobytes() for one in samples), _pack(snapshot.answers)]
    sections += [state.language] * talks
    version = 1 + talks
    header = _HEADERS[version].pack(_MAGIC, version, len(text), *map(len, sections))
    return [header, text, *sections, _mac(key, header, text, sections)]


def unpack_stream(blob: bytes, model_sha256: str, offer: Offer, key: bytes) -> StreamSnapshot:
    """Undo :func:`pack_stream`. The codec's own snapshots are checked where they are restored.

    Raises:
        SnapshotError: naming what is wrong.

    """
    facts_text, sections = _split(blob, key)
    facts = _parsed(facts_text)
    if facts.get("model_sha256") != model_sha256:
        raise SnapshotError("stream snapshot model sha256", quoted(facts.get("model_sha256")), model_sha256)
    settings = _settings(_object(facts, "settings"), offer)
    pending, intake, outlet = (_samples(section) for section in sections[2:5])
    if len(pending) >= offer.frame_samples:
        raise SnapshotError("stream snapshot pending samples", str(len(pending)), f"less than {offer.frame_samples}")
    state = StreamState(
        settings=settings,
        counters=_filled(StreamCounters, facts, "counters"),
        pending=pending,
        intake=ResamplerState(*_pair(facts, "intake"), intake),
        outlet=ResamplerState(*_pair(facts, "outlet"), outlet),
        **_parts([sections[index] for index in _MODEL_SECTIONS], settings, offer),
        text_pending=_text_pending(facts),
    )
    lineage = _filled(Lineage, facts, "lineage")
    try:
        checked_stream_id(lineage.stream_id)
    except ValueError as cause:
        raise SnapshotError("stream snapshot lineage.stream_id", quoted(lineage.stream_id), "32 hexadecimal digits") from cause
    return StreamSnapshot(lineage, state, list(_answers(sections[5])), _pair(facts, "freed", least=NOTHING))


def _split(blob: bytes, key: bytes) -> tuple[bytes, list[bytes]]:
    least = _HEADER.size + _DIGEST_BYTES
    if len(blob) < least:
        raise SnapshotError("stream snapshot size", f"{len(blob)} bytes", f"at least {least}")
    magic, version = _START.unpack_from(blob)
    if magic != _MAGIC:
        raise SnapshotError("stream snapshot magic", repr(magic), repr(_MAGIC))
    if version not in _HEADERS:
        raise SnapshotError("stream snapshot version", str(version), " or ".join(map(str, _HEADERS)))
    header = _HEADERS[version]
    least = header.size + _DIGEST_BYTES
    if len(blob) < least:
        raise SnapshotError("stream snapshot size", f"{len(blob)} bytes", f"at least {least}")
    _, _, facts_bytes, *section_bytes = header.unpack_from(blob)
    if facts_bytes > _FACTS_MAX_BYTES or least + facts_bytes + sum(section_bytes) != len(blob):
        raise SnapshotError("stream snapshot size", f"{len(blob)} bytes", "the sum of what its header lists")
    parts, start = [], header.size
    for size in (facts_bytes, *section_bytes):
        parts.append(blob[start : start + size])
        start += size
    if not hmac.compare_digest(_mac(key, blob[: header.size], parts[0], parts[1:]), blob[-_DIGEST_BYTES:]):
        raise SnapshotError("stream snapshot signature", "another one", "that of this service's secret: damaged or foreign")
    return parts[0], parts[1:] + [b""] * (len(_HEADERS) - version)


def _mac(key: bytes, header: bytes, facts: bytes, sections: list[bytes]) -> bytes:
    signature = hmac.new(key, header + facts, hashlib.sha256)
    for index, section in enumerate(sections):
        signature.update(section[-_DIGEST_BYTES:] if index in _MODEL_SECTIONS else section)
    return signature.digest()


def _parts(sections: list[bytes], settings: StreamSettings, offer: Offer) -> dict[str, Any]:
    """Name the snapshots of the models' sessions, and check that there are those that the mode needs."""
    parts = dict(zip(("encoder", "decoder", "language"), sections, strict=True))
    for name, section in parts.items():
        if bool(section) != (name in offer.parts_of(settings.mode)):
            raise SnapshotError(f"stream snapshot {name}", f"{len(section)} bytes", f"what mode {settings.mode} needs")
    return parts


def _text_pending(facts: dict[str, object]) -> bytes:
    value = facts.get("text_pending", "")
    try:
        pending = bytes.fromhex(value) if isinstance(value, str) else None
    except ValueError:
        pending = None
    if pending is None or len(pending) > _MOST_TEXT_BYTES:
        raise SnapshotError("stream snapshot text_pending", quoted(value), f"at most {_MOST_TEXT_BYTES} bytes, in hexadecimal")
    return pending


def _parsed(text: bytes) -> dict[str, object]:
    """Read the facts. What is signed is our own; a store may still bring what another version meant otherwise."""
    try:
        facts = json.loads(text)
    except (ValueError, RecursionError) as cause:
        raise SnapshotError("stream snapshot facts", "text that is not JSON", "a JSON object") from cause
    if not isinstance(facts, dict):
        raise SnapshotError("stream snapshot facts", quoted(facts), "a JSON object")
    return facts


def _settings(given: dict[str, object], offer: Offer) -> StreamSettings:
    try:
        return parse_settings(given, offer, from_text=False)
    except CodecError as cause:
        raise SnapshotError(f"stream snapshot {cause.subject}", cause.found, cause.expected) from cause


def _samples(section: bytes) -> npt.NDArray[np.float32]:
    if len(section) % 4:
        raise SnapshotError("stream snapshot samples", f"{len(section)} bytes", "whole samples")
    samples = np.frombuffer(section, "<f4").astype(np.float32)
    if not np.isfinite(samples).all():
        raise SnapshotError("stream snapshot samples", "a value that is not finite", "finite values")
    return samples


def _object(facts: dict[str, object], name: str) -> dict[str, object]:
    value = facts.get(name)
    if not isinstance(value, dict):
        raise SnapshotError(f"stream snapshot {name}", quoted(value), "an object")
    return value


def _pair(facts: dict[str, object], name: str, least: int = 0) -> tuple[int, int]:
    value = facts.get(name)
    if not isinstance(value, list) or len(value) != 2:
        raise SnapshotError(f"stream snapshot {name}", quoted(value), "two whole numbers")
    first, second = (_whole(f"stream snapshot {name}", one, least) for one in value)
    return first, second


def _whole(subject: str, value: object, least: int = 0) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < _LARGEST:
        raise SnapshotError(subject, quoted(value), f"a whole number of {least} or more")
    return value


def _filled(kind: type[Made], facts: dict[str, object], name: str) -> Made:
    """Make a dataclass of what is known by name; a later version may have more."""
    given, filled = _object(facts, name), {}
    for one in fields(cast(Any, kind)):
        subject = f"stream snapshot {name}.{one.name}"
        value = given.get(one.name, None if one.default is MISSING else one.default)
        if one.type == "int":
            value = _whole(subject, value)
        elif one.type == "float" and not (type(value) in (int, float) and math.isfinite(cast(float, value))):
            raise SnapshotError(subject, quoted(value), "a number")
        elif one.type == "str" and not isinstance(value, str):
            raise SnapshotError(subject, quoted(value), "text")
        filled[one.name] = value
    return kind(**filled)


def _pack(answers: list[Answer]) -> bytes:
    packed = bytearray()
    for answer in answers:
        is_text = isinstance(answer.message, str)
        message = answer.message.encode() if isinstance(answer.message, str) else answer.message
        sequence = _BETWEEN if answer.sequence is None else answer.sequence
        packed += _ANSWER.pack(is_text, answer.epoch, sequence, len(message)) + message
    return bytes(packed)


def _answers(section: bytes) -> Iterator[Answer]:
    start = 0
    while start < len(section):
        if len(section) - start < _ANSWER.size:
            raise _broken_answer(start)
        is_text, epoch, sequence, size = _ANSWER.unpack_from(section, start)
        start += _ANSWER.size
        message = section[start : start + size]
        if len(message) < size or sequence < _BETWEEN:
            raise _broken_answer(start)
        start += size
        try:
            yield Answer(message.decode() if is_text else message, epoch, None if sequence == _BETWEEN else sequence)
        except UnicodeDecodeError as cause:
            raise _broken_answer(start) from cause


def _broken_answer(start: int) -> SnapshotError:
    return SnapshotError("stream snapshot answers", f"a broken one at byte {start}", "whole answers")
