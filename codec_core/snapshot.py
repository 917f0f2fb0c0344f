"""Snapshots: one session's whole state as bytes.

Little-endian, version 1::

    8 bytes   "MIMISNAP"
    u32       version
    u8        direction: 0 encoder, 1 decoder, 2 language model
    u8        numerics: 0 kyutai, 1 ggml, 2 ggml-causal
    u16       levels: of a language model, its own
    u32       pending samples of an unfinished frame (only an encoder has any)
    u64       bytes of engine state
    32 bytes  sha256 of the model file
    f32[]     pending samples
    u8[]      engine state: position, conv histories, keys and values within reach; of a language model before them how it
              samples, its conditions and the tokens on their way
    32 bytes  sha256 of everything before

Sizes are checked against the blob's before anything is read, the engine checks its own part against the model's geometry and
refuses values that are not finite.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from codec_core.errors import SnapshotError

if TYPE_CHECKING:
    from codec_core.model import ModelInfo

_MAGIC: Final = b"MIMISNAP"
_VERSION: Final = 1
_HEADER: Final = struct.Struct("<8sIBBHIQ32s")
_DIGEST_BYTES: Final = 32
_DIRECTIONS: Final = ("encoder", "decoder", "language")
_NUMERICS: Final = ("kyutai", "ggml", "ggml-causal")


class Identified(Protocol):
    """What a snapshot must agree with."""

    @property
    def sha256(self) -> str:
        """Of the model's file."""
        ...

    @property
    def numerics(self) -> str:
        """Under which the model runs."""
        ...


@dataclass(frozen=True)
class SnapshotContent:
    """What a snapshot holds besides the identity of its model."""

    levels: int
    pending: NDArray[np.float32]
    state: bytes


def pack(info: Identified, direction: str, content: SnapshotContent) -> bytes:
    """Return the snapshot of a session of the model ``info`` describes: ``encoder``, ``decoder`` or ``language``."""
    header = _HEADER.pack(
        _MAGIC,
        _VERSION,
        _DIRECTIONS.index(direction),
        _NUMERICS.index(info.numerics),
        content.levels,
        len(content.pending),
        len(content.state),
        bytes.fromhex(info.sha256),
    )
    body = header + content.pending.astype("<f4").tobytes() + content.state
    return body + hashlib.sha256(body).digest()


def unpack(blob: bytes, info: ModelInfo, direction: str) -> SnapshotContent:
    """Return what a snapshot of this codec and direction holds.

    Raises:
        SnapshotError: naming the field that is wrong.

    """
    content = _opened(blob, info, direction)
    if not 1 <= content.levels <= info.levels:
        raise SnapshotError("snapshot levels", str(content.levels), f"1 .. {info.levels}")
    if len(content.pending) >= info.frame_samples or (len(content.pending) and direction == "decoder"):
        raise SnapshotError("snapshot pending samples", str(len(content.pending)), "less than a frame, and none for a decoder")
    if not np.isfinite(content.pending).all():
        raise SnapshotError("snapshot pending samples", "a value that is not finite", "finite values")
    return content


def unpack_language(blob: bytes, info: Identified, own_levels: int) -> bytes:
    """Return the engine's state in a snapshot of this language model; Error as :func:`unpack`."""
    content = _opened(blob, info, "language")
    _require("snapshot levels", content.levels, own_levels)
    _require("snapshot pending samples", len(content.pending), 0)
    return content.state


def _opened(blob: bytes, info: Identified, direction: str) -> SnapshotContent:
    blob = bytes(blob)
    least = _HEADER.size + _DIGEST_BYTES
    if len(blob) < least:
        raise SnapshotError("snapshot size", f"{len(blob)} bytes", f"at least {least}")
    magic, version, side, numerics, levels, pending, state_bytes, model = _HEADER.unpack_from(blob)
    _require("snapshot magic", magic, _MAGIC)
    _require("snapshot version", version, _VERSION)
    _require("snapshot size", len(blob), least + 4 * pending + state_bytes)
    body = blob[:-_DIGEST_BYTES]
    if hashlib.sha256(body).digest() != blob[-_DIGEST_BYTES:]:
        raise SnapshotError("snapshot digest", "a mismatch", "the sha256 of the content: the snapshot is damaged")
    _require("snapshot direction", _name(_DIRECTIONS, side), direction)
    _require("snapshot numerics", _name(_NUMERICS, numerics), info.numerics)
    _require("snapshot model sha256", model.hex(), info.sha256)
    samples = np.frombuffer(body, "<f4", pending, _HEADER.size).astype(np.float32)
    return SnapshotContent(levels, samples, body[_HEADER.size + 4 * pending :])


def _name(names: tuple[str, ...], index: int) -> str:
    return names[index] if index < len(names) else str(index)


def _require(field: str, found: object, expected: object) -> None:
    if found != expected:
        raise SnapshotError(field, str(found), str(expected))
