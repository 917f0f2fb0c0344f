"""A snapshot that is not exactly right is refused, naming the field; no session comes of it."""

from __future__ import annotations

import hashlib
import struct

import numpy as np
import pytest

from codec_core import CodecModel
from codec_core.errors import SnapshotError

DIGEST_BYTES = 32


def sealed(body: bytes) -> bytes:
    """The body with a digest that is right."""
    return body + hashlib.sha256(body).digest()


@pytest.fixture
def blob(tiny_model: CodecModel, pcm: np.ndarray) -> bytes:
    session = tiny_model.encoder(8)
    session.push(pcm[: 6 * 1920 + 10])
    return session.snapshot()


def with_field(blob: bytes, format_: str, offset: int, value: object) -> bytes:
    body = bytearray(blob[:-DIGEST_BYTES])
    struct.pack_into(format_, body, offset, value)
    return sealed(bytes(body))


def assert_refused(model: CodecModel, blob: bytes, field: str) -> None:
    with pytest.raises(SnapshotError) as refusal:
        model.restore_encoder(blob)
    assert refusal.value.subject.startswith(f"snapshot {field}"), refusal.value


@pytest.mark.parametrize(
    ("format_", "offset", "value", "field"),
    [
        ("8s", 0, b"MIMISNAQ", "magic"),
        ("<I", 8, 0, "version"),
        ("<I", 8, 2, "version"),
        ("<B", 12, 1, "direction"),
        ("<B", 12, 200, "direction"),
        ("<B", 13, 1, "numerics"),
        ("<B", 13, 77, "numerics"),
        ("<H", 14, 0, "levels"),
        ("<H", 14, 33, "levels"),
        ("<I", 16, 11, "size"),
        ("<I", 16, 2**32 - 1, "size"),
        ("<Q", 20, 0, "size"),
        ("<Q", 20, 2**64 - 1, "size"),
        ("32s", 28, bytes(32), "model sha256"),
        ("<f", 60, float("nan"), "pending samples"),
        ("<Q", 100, 2**63, "position"),
        ("<Q", 100, 1, "state size"),
        ("<f", 108, float("inf"), "state"),
    ],
)
def test_each_field_is_checked(  # noqa: PLR0917
    tiny_model: CodecModel, blob: bytes, format_: str, offset: int, value: object, field: str
):
    assert_refused(tiny_model, with_field(blob, format_, offset, value), field)


def test_truncation_anywhere_is_refused(tiny_model: CodecModel, blob: bytes, rng: np.random.Generator):
    cuts = {0, 1, 59, 60, 91, 92, len(blob) - DIGEST_BYTES, len(blob) - 1, *rng.integers(0, len(blob), 50).tolist()}
    for cut in sorted(cuts):
        with pytest.raises(SnapshotError):
            tiny_model.restore_encoder(blob[:cut])
    with pytest.raises(SnapshotError):
        tiny_model.restore_encoder(blob + b"\0")


def test_any_flipped_bit_is_refused(tiny_model: CodecModel, blob: bytes, rng: np.random.Generator):
    for position in rng.integers(0, len(blob), 200).tolist():
        damaged = bytearray(blob)
        damaged[position] ^= 1 << int(rng.integers(8))
        with pytest.raises(SnapshotError):
            tiny_model.restore_encoder(bytes(damaged))


def test_a_whole_frame_pending_is_refused(tiny_model: CodecModel, blob: bytes):
    body = blob[:-DIGEST_BYTES]
    pending = struct.unpack_from("<I", body, 16)[0]
    longer = body[:16] + struct.pack("<I", 1920) + body[20:60] + bytes(4 * 1920) + body[60 + 4 * pending :]
    assert_refused(tiny_model, sealed(longer), "pending samples")


def test_a_decoder_has_no_pending_samples(tiny_model: CodecModel):
    body = tiny_model.decoder(8).snapshot()[:-DIGEST_BYTES]
    forged = body[:16] + struct.pack("<I", 1) + body[20:60] + bytes(4) + body[60:]
    with pytest.raises(SnapshotError, match="pending samples"):
        tiny_model.restore_decoder(sealed(forged))


def test_another_model_s_snapshot_is_refused(default_model: CodecModel, blob: bytes):
    assert_refused(default_model, blob, "model sha256")


def test_the_other_direction_s_snapshot_is_refused(tiny_model: CodecModel, blob: bytes):
    with pytest.raises(SnapshotError, match="direction"):
        tiny_model.restore_decoder(blob)


def test_only_keys_within_reach_are_kept(full_model: CodecModel, pcm: np.ndarray):
    """A young stream's snapshot is small, whatever its ring could hold."""
    session = full_model.encoder(8)
    session.push(pcm[: 2 * 1920])
    assert len(session.snapshot()) < 300_000 < session.state_bytes
