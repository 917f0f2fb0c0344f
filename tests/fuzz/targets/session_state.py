"""The engine's part of a snapshot: as ``fuzz_session_state.cc``, which libFuzzer runs.

Input: a byte that chooses direction and numerics, one for the levels, and the state's bytes. What is taken is exactly what
:func:`save_state` then gives; what is refused leaves the session as it was.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import numpy as np

from codec_core import DecoderSession, EncoderSession
from codec_core.errors import NumericOverflowError, SettingError, SnapshotError
from tests.fuzz.materials import NUMERICS, model, require_typed

COVERED: Final = ("ext/state/stream_state.cc",)
DICTIONARY: Final = (
    b"\x00\x00\xc0\x7f",
    b"\x00\x00\x80\x7f",
    b"\xff\xff\x7f\x7f",
    b"\x00\x00\x80\xff",
    b"\x01\x00\x00\x00\x00\x00\x00\x00",
)


def session_of(data: bytes) -> EncoderSession | DecoderSession:
    codec = model(NUMERICS[(data[0] >> 1) % 3])
    levels = 1 + data[1] % codec.info.levels
    return codec.decoder(levels) if data[0] & 1 else codec.encoder(levels)


def one_input(data: bytes) -> None:
    if len(data) < 2:
        return
    session, state = session_of(data), data[2:]
    before = session.native.save_state()
    try:
        session.native.load_state(state)
    except SnapshotError as error:
        require_typed(error)
        assert session.native.save_state() == before
        return
    assert session.native.save_state() == state
    try:
        session.push(np.zeros((session.levels, 1), np.int32) if data[0] & 1 else np.zeros(1920, np.float32))
    except (NumericOverflowError, SettingError) as error:
        require_typed(error)
        assert session.native.save_state() == state


def seeds() -> Iterator[bytes]:
    for choice in range(6):
        head = bytes([choice, 1])
        session = session_of(head)
        for frames in (0, 1, 1, 3, 9):
            pcm = np.linspace(-0.4, 0.4, 1920 * frames, dtype=np.float32)
            session.push(np.ones((session.levels, frames), np.int32) if choice & 1 else pcm)
            state = session.native.save_state()
            yield head + state
        yield from (head + state[:size] for size in (0, 7, 8, len(state) - 1))
        yield head + struct.pack("<Q", 1 << 62) + state[8:]
        yield head + struct.pack("<Q", 77) + state[8:]
        yield head + state[:-4] + struct.pack("<f", float("nan"))
        yield head + state[:8] + struct.pack("<f", 3e38) * ((len(state) - 8) // 4)
