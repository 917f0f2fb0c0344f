"""Saved state: snapshots of sessions and of whole streams, and the tokens that ask for them.

Input: one byte that chooses what it is, one whose lowest bit says whether digest and signature are made right, so that what
they protect is reached too; then the bytes without them.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
import json
import struct
from collections.abc import Iterator
from typing import Final

import numpy as np

from codec_core.errors import NumericOverflowError, SettingError, SnapshotError
from server import access_token, resume_token, stream_snapshot
from server.access_token import TokenClaims
from server.codec_executor import CodecExecutor
from server.errors import ResumeLostError, ResumeRefusedError, TokenExpiredError, TokenScopeError, UnauthorizedError
from server.replay_window import Answer, ReplayWindow
from server.resampling import ResamplerState
from server.resume_token import ResumeToken
from server.stream_session import StreamSession
from server.stream_snapshot import Lineage, StreamSnapshot, pack_stream, unpack_stream
from server.stream_state import StreamCounters, StreamState
from server.wire_settings import Offer, StreamSettings
from tests.fuzz.materials import model, require_typed

COVERED: Final = (
    "codec_core/snapshot.py",
    "server/access_token.py",
    "server/replay_window.py",
    "server/resume_token.py",
    "server/stream_snapshot.py",
    "server/stream_state.py",
)
DICTIONARY: Final = (
    b"MIMISNAP",
    b"MIMISTRM",
    b'"lineage":{',
    b'"model_sha256":"',
    b'"settings":{',
    b'"counters":{',
    b'"intake":[',
    b'"outlet":[',
    b'"freed":[',
    b"null",
    b"-1",
    b"1e999",
    b"[]",
    b"{}",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x00\x00\xc0\x7f",
)
ENCODER, DECODER, STREAM, RESUME, ACCESS = range(5)
KEY: Final = bytes(range(32))
DIGEST_BYTES: Final = 32


def one_input(data: bytes) -> None:
    if len(data) < 2:
        return
    kind, is_right, content = data[0] % 5, bool(data[1] & 1), data[2:]
    try:
        if kind in (ENCODER, DECODER):
            _restore(kind, content + hashlib.sha256(content).digest() if is_right else content)
        elif kind == STREAM:
            _revive(_signed(content) if is_right else content)
        else:
            _read_token(kind, content, is_right=is_right)
    except (SnapshotError, ResumeRefusedError, ResumeLostError, TokenExpiredError, TokenScopeError, UnauthorizedError) as error:
        require_typed(error)


def _restore(kind: int, blob: bytes) -> None:
    restore = model().restore_encoder if kind == ENCODER else model().restore_decoder
    session = restore(blob)
    assert session.snapshot() == blob
    try:
        if kind == ENCODER:
            session.push(np.zeros(1920, np.float32))
        else:
            session.push(np.zeros((session.levels, 1), np.int32))
    except (NumericOverflowError, SettingError) as error:
        # What a session may hold, it may also have been driven to: only the step can tell.
        require_typed(error)


@functools.lru_cache(maxsize=1)
def executor() -> CodecExecutor:
    return CodecExecutor(model())


@functools.lru_cache(maxsize=1)
def offer() -> Offer:
    info = model().info
    return Offer(info.default_levels, info.levels, info.codebook_entries, info.frame_samples, 24_000, info.numerics)


def _revive(blob: bytes) -> None:
    snapshot = unpack_stream(blob, model().info.sha256, offer(), KEY)
    window = ReplayWindow(10, 1 << 12)
    window.restore(snapshot.answers, snapshot.freed)
    session = StreamSession(snapshot.state, model(), executor(), _nowhere)
    try:
        assert session.position == snapshot.state.position
        window.after(snapshot.state.counters.epoch, snapshot.state.counters.sequence - 1)
        window.acknowledge(0, 0)
        again = b"".join(pack_stream(StreamSnapshot(snapshot.lineage, session.capture(), window.content()), "", KEY))
        assert len(again) > DIGEST_BYTES
    finally:
        session.close()


async def _nowhere(_: Answer) -> None:
    """Take an answer that nobody waits for."""


def _signed(blob: bytes) -> bytes:
    """Append the signature that this content would have."""
    header, parts, start = stream_snapshot._HEADER, [], stream_snapshot._HEADER.size
    if len(blob) < header.size:
        return blob
    for size in header.unpack_from(blob)[2:]:
        parts.append(blob[start : start + size])
        start += size
    return blob + stream_snapshot._mac(KEY, blob[: header.size], parts[0], parts[1:])


def _read_token(kind: int, content: bytes, *, is_right: bool) -> None:
    if kind == RESUME:
        signed = content + hmac.digest(KEY, content, hashlib.sha256)
        text = base64.urlsafe_b64encode(signed).decode().rstrip("=") if is_right else content.decode("utf-8", "replace")
        resume_token.read_token(text, KEY, 1.0)
        return
    text = content.decode("utf-8", "replace")
    access_token.check_scope(access_token.read_token(text, KEY, 1), "/v1/stream")


def seeds() -> Iterator[bytes]:
    encoder, decoder = model().encoder(2), model().decoder(2)
    for _ in range(3):
        yield bytes([ENCODER, 1]) + encoder.snapshot()[:-DIGEST_BYTES]
        yield bytes([DECODER, 1]) + decoder.snapshot()[:-DIGEST_BYTES]
        encoder.push(np.linspace(-0.5, 0.5, 2500, dtype=np.float32))
        decoder.push(np.ones((2, 3), np.int32))
    whole = encoder.snapshot()
    yield bytes([ENCODER, 0]) + whole
    yield bytes([DECODER, 0]) + whole
    yield from (bytes([ENCODER, 1]) + damaged for damaged in _damaged(whole[:-DIGEST_BYTES]))
    for settings in (("encode", "s16le", 24_000), ("decode", "f32le", 48_000), ("echo", "mulaw", 8_000)):
        stream = _stream(*settings)
        yield bytes([STREAM, 0]) + stream
        yield bytes([STREAM, 1]) + stream[:-DIGEST_BYTES]
        yield from (bytes([STREAM, 1]) + _with_facts(stream[:-DIGEST_BYTES], *change) for change in WRONG_FACTS)
        yield from (bytes([STREAM, 1]) + damaged for damaged in _damaged(stream[:-DIGEST_BYTES]))
    yield from _tokens()


WRONG_FACTS: Final = (
    ("lineage", {}),
    ("lineage", None),
    ("settings", {"mode": "x"}),
    ("settings", []),
    ("counters", {"frames": "x"}),
    ("counters", {"epoch": -1}),
    ("intake", [0]),
    ("intake", [-5, 7]),
    ("outlet", {}),
    ("outlet", [1 << 62, 1 << 62]),
    ("freed", None),
    ("freed", [0, "x"]),
    ("model_sha256", 5),
)


def _damaged(blob: bytes) -> Iterator[bytes]:
    yield from (blob[:12] + bytes([value]) + blob[13:] for value in (0, 1, 7))
    yield from (blob[:size] for size in (0, 7, 40, len(blob) // 2, len(blob) - 1))
    yield b"X" + blob[1:]
    yield blob[:8] + b"\x09" + blob[9:]
    yield blob[:14] + b"\xff\x7f" + blob[16:]
    yield blob[:16] + b"\xff\xff\xff\xff" + blob[20:]
    yield blob[:20] + b"\xff" * 8 + blob[28:]
    yield blob[:-4] + struct.pack("<f", float("nan"))


def _stream(mode: str, form: str, rate: int) -> bytes:
    settings = StreamSettings(mode, 2, form, rate, 1, "binary", "off", "kyutai")
    pcm = np.linspace(-0.5, 0.5, 700, dtype=np.float32)
    state = StreamState(
        settings,
        StreamCounters(frames=2, epoch_frames=2, sequence=2),
        pcm if mode != "decode" else pcm[:0],
        ResamplerState(0, 0, pcm[:0] if rate == 24_000 or mode == "decode" else pcm),
        ResamplerState(0, 0, pcm[:0] if rate == 24_000 or mode == "encode" else pcm),
        b"" if mode == "decode" else model().encoder(2).snapshot(),
        b"" if mode == "encode" else model().decoder(2).snapshot(),
    )
    lineage = Lineage("00112233445566778899aabbccddeeff", 1.5, 3, 2)
    answers = [Answer("{}", 0, None), Answer(b"frame", 0, 0), Answer(b"frame", 0, 1)]
    return b"".join(pack_stream(StreamSnapshot(lineage, state, answers), model().info.sha256, KEY))


def _with_facts(blob: bytes, name: str, value: object) -> bytes:
    header = list(stream_snapshot._HEADER.unpack_from(blob))
    start, end = stream_snapshot._HEADER.size, stream_snapshot._HEADER.size + header[2]
    facts = json.loads(blob[start:end]) | {name: value}
    text = json.dumps(facts).encode()
    header[2] = len(text)
    return stream_snapshot._HEADER.pack(*header) + text + blob[end:]


def _tokens() -> Iterator[bytes]:
    good = ResumeToken("00112233445566778899aabbccddeeff", 1, 1 << 40, "ab" * 32, "kyutai")
    for token in (good, ResumeToken(good.stream_id, 1, 0, good.model_sha256, "kyutai")):
        text = resume_token.sign_token(token, KEY)
        yield bytes([RESUME, 0]) + text.encode()
        yield bytes([RESUME, 1]) + base64.urlsafe_b64decode(text + "==")[:-DIGEST_BYTES]
    yield from (bytes([RESUME, 1]) + content for content in (b"", b"\x02" + bytes(100), bytes(20)))
    yield from (bytes([RESUME, 0]) + content for content in (b"A", b"====", "é".encode() * 20))
    for claims in (TokenClaims(("stream",), 1 << 40, ""), TokenClaims(("info",), 1 << 40, "k"), TokenClaims((), 0, "")):
        yield bytes([ACCESS, 0]) + access_token.sign_token(claims, KEY).encode()
    yield from (bytes([ACCESS, 0]) + content for content in (b"1.e30.AAAA", b"", b"...", b"1." + b"x" * 2000))
