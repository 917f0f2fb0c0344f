"""Snapshots of whole streams: what a replica needs to go on with one that it has never seen.

Little-endian, version 1::

    8 bytes   "MIMISTRM"
    u32       version
    u32       bytes of the facts
    u64[6]    bytes of each section
    u8[]      facts: JSON, identity, settings and counters
    u8[]      sections: encoder, decoder (snapshots of codec_core), pending, intake, outlet (f32[]), answers
    32 bytes  HMAC-SHA256

The HMAC covers header, facts, answers and samples, and of the codec's snapshots the sha256 at their end, against which the
library checks them: megabytes are hashed once. Sizes are checked before anything is read, the HMAC before anything is parsed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import struct
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from codec_core.errors import CodecError, SnapshotError
from server.replay_window import NOTHING, Answer
from server.resampling import ResamplerState
from server.stream_state import StreamCounters, StreamState
from server.wire_settings import Offer, StreamSettings, parse_settings

_MAGIC: Final = b"MIMISTRM"
_VERSION: Final = 1
_SECTIONS: Final = 6
_CODEC_SECTIONS: Final = 2
_HEADER: Final = struct.Struct(f"<8sII{_SECTIONS}Q")
_ANSWER: Final = struct.Struct("<BIqI")
_DIGEST_BYTES: Final = 32
_FACTS_MAX_BYTES: Final = 65_536


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
    state = snapshot.state
    facts = {
        "lineage": asdict(snapshot.lineage),
        "model_sha256": model_sha256,
        "settings": asdict(state.settings),
        "counters": asdict(state.counters),
        "intake": [state.intake.first_sample, state.intake.taken_samples],
        "outlet": [state.outlet.first_sample, state.outlet.taken_samples],
        "freed": list(snapshot.freed),
    }
    text = json.dumps(facts, separators=(",", ":")).encode()
    samples = (state.pending, state.intake.heard, state.outlet.heard)
    sections = [state.encoder, state.decoder, *(one.astype("<f4").tobytes() for one in samples), _pack(snapshot.answers)]
    header = _HEADER.pack(_MAGIC, _VERSION, len(text), *map(len, sections))
    return [header, text, *sections, _mac(key, header, text, sections)]


def unpack_stream(blob: bytes, model_sha256: str, offer: Offer, key: bytes) -> StreamSnapshot:
    """Undo :func:`pack_stream`. The codec's own snapshots are checked where they are restored.

    Raises:
        SnapshotError: naming what is wrong.

    """
    facts_text, sections = _split(blob, key)
    facts = json.loads(facts_text)
    if facts["model_sha256"] != model_sha256:
        raise SnapshotError("stream snapshot model sha256", facts["model_sha256"], model_sha256)
    try:
        settings = parse_settings(facts["settings"], offer, from_text=False)
    except CodecError as cause:
        raise SnapshotError(f"stream snapshot {cause.subject}", cause.found, cause.expected) from cause
    pending, intake, outlet = (_samples(section) for section in sections[2:5])
    state = StreamState(
        settings=settings,
        counters=_filled(StreamCounters, facts["counters"]),
        pending=pending,
        intake=ResamplerState(facts["intake"][0], facts["intake"][1], intake),
        outlet=ResamplerState(facts["outlet"][0], facts["outlet"][1], outlet),
        encoder=_expected(sections[0], "encoder", settings, "decode"),
        decoder=_expected(sections[1], "decoder", settings, "encode"),
    )
    lineage = _filled(Lineage, facts["lineage"])
    return StreamSnapshot(lineage, state, list(_answers(sections[5])), (facts["freed"][0], facts["freed"][1]))


def _split(blob: bytes, key: bytes) -> tuple[bytes, list[bytes]]:
    least = _HEADER.size + _DIGEST_BYTES
    if len(blob) < least:
        raise SnapshotError("stream snapshot size", f"{len(blob)} bytes", f"at least {least}")
    magic, version, facts_bytes, *section_bytes = _HEADER.unpack_from(blob)
    if magic != _MAGIC:
        raise SnapshotError("stream snapshot magic", repr(magic), repr(_MAGIC))
    if version != _VERSION:
        raise SnapshotError("stream snapshot version", str(version), str(_VERSION))
    if facts_bytes > _FACTS_MAX_BYTES or least + facts_bytes + sum(section_bytes) != len(blob):
        raise SnapshotError("stream snapshot size", f"{len(blob)} bytes", "the sum of what its header lists")
    parts, start = [], _HEADER.size
    for size in (facts_bytes, *section_bytes):
        parts.append(blob[start : start + size])
        start += size
    if not hmac.compare_digest(_mac(key, blob[: _HEADER.size], parts[0], parts[1:]), blob[-_DIGEST_BYTES:]):
        raise SnapshotError("stream snapshot signature", "another one", "that of this service's secret: damaged or foreign")
    return parts[0], parts[1:]


def _mac(key: bytes, header: bytes, facts: bytes, sections: list[bytes]) -> bytes:
    signature = hmac.new(key, header + facts, hashlib.sha256)
    for index, section in enumerate(sections):
        signature.update(section[-_DIGEST_BYTES:] if index < _CODEC_SECTIONS else section)
    return signature.digest()


def _expected(section: bytes, name: str, settings: StreamSettings, mode_without: str) -> bytes:
    if bool(section) == (settings.mode == mode_without):
        raise SnapshotError(f"stream snapshot {name}", f"{len(section)} bytes", f"what mode {settings.mode} needs")
    return section


def _samples(section: bytes) -> npt.NDArray[np.float32]:
    return np.frombuffer(section, "<f4").astype(np.float32)


def _filled(kind: type[Any], values: dict[str, object]) -> Any:
    """Make a dataclass of what is known by name; a later version may have more."""
    return kind(**{one.name: values[one.name] for one in fields(kind) if one.name in values})


def _pack(answers: list[Answer]) -> bytes:
    packed = bytearray()
    for answer in answers:
        is_text = isinstance(answer.message, str)
        message = answer.message.encode() if isinstance(answer.message, str) else answer.message
        sequence = NOTHING if answer.sequence is None else answer.sequence
        packed += _ANSWER.pack(is_text, answer.epoch, sequence, len(message)) + message
    return bytes(packed)


def _answers(section: bytes) -> Iterator[Answer]:
    start = 0
    while start < len(section):
        is_text, epoch, sequence, size = _ANSWER.unpack_from(section, start)
        start += _ANSWER.size
        message = section[start : start + size]
        start += size
        yield Answer(message.decode() if is_text else message, epoch, None if sequence == NOTHING else sequence)
