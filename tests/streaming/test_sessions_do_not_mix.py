"""Interleaved and batched sessions give what each gives alone, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from codec_core import CodecModel

FRAMES = 8
BATCHES = [1, 2, 3, 7, 16]


def _streams(pcm: np.ndarray, count: int) -> np.ndarray:
    """float32 [count, FRAMES, 1920], all different."""
    return np.array([pcm[lane * 1711 : lane * 1711 + FRAMES * 1920].reshape(FRAMES, 1920) for lane in range(count)])


def test_two_interleaved_encoders(model: CodecModel, pcm: np.ndarray, levels: int):
    streams = _streams(pcm, 2)
    alone = [model.encoder(levels).push(stream.reshape(-1)) for stream in streams]
    sessions = [model.encoder(levels), model.encoder(levels)]
    together = [[session.encode(streams[lane, f]) for lane, session in enumerate(sessions)] for f in range(FRAMES)]
    for lane in range(2):
        assert np.array_equal(np.array([codes[lane] for codes in together]).T, alone[lane])


def test_an_encoder_and_a_decoder_interleaved(model: CodecModel, pcm: np.ndarray, levels: int):
    frames = _streams(pcm, 1)[0]
    codes = model.encoder(levels).push(frames.reshape(-1))
    sound = model.decoder(levels).push(codes)
    encoder, decoder = model.encoder(levels), model.decoder(levels)
    echoed = [decoder.decode(encoder.encode(frame)) for frame in frames]
    assert np.array_equal(np.concatenate(echoed), sound)


@pytest.mark.parametrize("count", BATCHES)
def test_encoding_in_a_batch_equals_one_by_one(model: CodecModel, pcm: np.ndarray, levels: int, count: int):
    streams = _streams(pcm, count)
    alone = [model.encoder(levels).push(stream.reshape(-1)) for stream in streams]
    sessions = [model.encoder(levels) for _ in range(count)]
    batched = np.array([model.encode_batch(sessions, streams[:, f]) for f in range(FRAMES)])
    for lane in range(count):
        assert np.array_equal(batched[:, lane].T, alone[lane]), f"lane {lane}"


@pytest.mark.parametrize("count", BATCHES)
def test_decoding_in_a_batch_equals_one_by_one(model: CodecModel, rng: np.random.Generator, levels: int, count: int):
    codes = rng.integers(0, model.info.codebook_entries, (count, levels, FRAMES))
    alone = [model.decoder(levels).push(stream) for stream in codes]
    sessions = [model.decoder(levels) for _ in range(count)]
    batched = np.array([model.decode_batch(sessions, codes[:, :, f]) for f in range(FRAMES)])
    for lane in range(count):
        assert np.array_equal(batched[:, lane].reshape(-1), alone[lane]), f"lane {lane}"


def test_a_batch_of_sessions_at_different_positions(model: CodecModel, pcm: np.ndarray, levels: int):
    streams = _streams(pcm, 4)
    alone = [model.encoder(levels).push(stream.reshape(-1)) for stream in streams]
    sessions = [model.encoder(levels) for _ in range(4)]
    codes: list[list[np.ndarray]] = [[] for _ in sessions]
    for lane, session in enumerate(sessions):
        codes[lane] += [session.encode(frame) for frame in streams[lane, :lane]]
    for step in range(FRAMES - 3):
        frames = np.array([streams[lane, lane + step] for lane in range(4)])
        for lane, row in enumerate(model.encode_batch(sessions, frames)):
            codes[lane].append(row)
    for lane in range(4):
        found = np.array(codes[lane]).T
        assert np.array_equal(found, alone[lane][:, : found.shape[1]]), f"lane {lane}"


def test_fewer_levels_are_a_prefix(model: CodecModel, pcm: np.ndarray):
    clip = pcm[: FRAMES * 1920]
    every = model.encoder(model.info.levels).push(clip)
    for levels in (1, 2, 8, 31):
        assert np.array_equal(model.encoder(levels).push(clip), every[:levels])
