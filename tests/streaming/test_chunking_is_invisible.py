"""However a stream is cut into chunks, the same bits come out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from codec_core import CodecModel

FRAMES = 12
CHUNKS = {
    "single samples": [1],
    "one below a frame": [1919],
    "a frame": [1920],
    "one above a frame": [1921],
    "half a frame less one": [959],
    "empty ones between": [0, 700, 0, 0, 1920],
    "primes": [2, 3, 5, 7, 11, 13, 17, 19, 23, 101, 997, 1009, 4099],
    "whole": [10**9],
}


@pytest.fixture
def in_one_piece(model: CodecModel, pcm: np.ndarray, levels: int) -> np.ndarray:
    """Frame by frame through encode(), which knows no chunks; the tail padded by hand."""
    session = model.encoder(levels)
    padded = np.concatenate([pcm[: FRAMES * 1920 + 700], np.zeros(1220, np.float32)])
    return np.array([session.encode(frame) for frame in padded.reshape(-1, 1920)]).T


@pytest.mark.parametrize("sizes", CHUNKS.values(), ids=CHUNKS.keys())
def test_pcm_in_any_chunks(model: CodecModel, pcm: np.ndarray, levels: int, in_one_piece: np.ndarray, sizes: list[int]):
    clip = pcm[: FRAMES * 1920 + 700]
    session = model.encoder(levels)
    pieces, taken = [], 0
    for size in itertools.cycle(sizes):
        pieces.append(session.push(clip[taken : taken + size]))
        taken += size
        assert session.pending_samples == min(taken, len(clip)) % 1920
        if taken >= len(clip):
            break
    pieces.append(session.flush())
    assert np.array_equal(np.concatenate(pieces, axis=1), in_one_piece)


def test_int16_is_the_same_stream_as_its_float32(model: CodecModel, pcm: np.ndarray, levels: int):
    whole = np.round(pcm[: FRAMES * 1920] * 32768).clip(-32768, 32767).astype(np.int16)
    as_float = model.encoder(levels).push(whole.astype(np.float32) / 32768)
    assert np.array_equal(model.encoder(levels).push(whole), as_float)


@pytest.mark.parametrize("frames_per_push", [1, 2, 5, FRAMES])
def test_codes_in_any_chunks(model: CodecModel, rng: np.random.Generator, levels: int, frames_per_push: int):
    codes = rng.integers(0, model.info.codebook_entries, (levels, FRAMES))
    one_by_one = model.decoder(levels)
    expected = np.concatenate([one_by_one.decode(frame) for frame in codes.T])
    session = model.decoder(levels)
    pieces = [session.push(codes[:, start : start + frames_per_push]) for start in range(0, FRAMES, frames_per_push)]
    assert np.array_equal(np.concatenate(pieces), expected)


def test_flush_of_nothing_gives_nothing(model: CodecModel, pcm: np.ndarray, levels: int):
    session = model.encoder(levels)
    assert session.flush().shape == (levels, 0)
    session.push(pcm[:1920])
    assert session.flush().shape == (levels, 0)
