"""A restored session goes on as if nothing had happened, wherever the stream was cut."""

from __future__ import annotations

import numpy as np
import pytest

from codec_core import CodecModel

FRAMES = 12


@pytest.mark.parametrize("cut_samples", [0, 1, 1919, 1920, 4 * 1920, 5 * 1920 + 333, 11 * 1920])
def test_encoder(model: CodecModel, pcm: np.ndarray, levels: int, cut_samples: int):
    clip = pcm[: FRAMES * 1920 + 50]
    undisturbed = model.encoder(levels)
    expected = undisturbed.push(clip)
    session = model.encoder(levels)
    before = session.push(clip[:cut_samples])
    blob = session.snapshot()
    session.push(pcm[1000:9000])
    restored = model.restore_encoder(blob)
    assert (restored.levels, restored.pending_samples) == (levels, cut_samples % 1920)
    assert restored.snapshot() == blob
    after = restored.push(clip[cut_samples:])
    assert np.array_equal(np.concatenate([before, after], axis=1), expected)
    assert restored.snapshot() == undisturbed.snapshot()


@pytest.mark.parametrize("cut_frames", [0, 1, 4, 5, 11])
def test_decoder(model: CodecModel, rng: np.random.Generator, levels: int, cut_frames: int):
    codes = rng.integers(0, model.info.codebook_entries, (levels, FRAMES))
    undisturbed = model.decoder(levels)
    expected = undisturbed.push(codes)
    session = model.decoder(levels)
    before = session.push(codes[:, :cut_frames])
    blob = session.snapshot()
    restored = model.restore_decoder(blob)
    assert restored.snapshot() == blob
    assert np.array_equal(np.concatenate([before, restored.push(codes[:, cut_frames:])]), expected)
    assert restored.snapshot() == undisturbed.snapshot()


def test_another_process_s_model_of_the_same_file(tiny_model_path, pcm: np.ndarray):
    first, second = CodecModel.open(tiny_model_path), CodecModel.open(tiny_model_path, threads=2)
    session = first.encoder(8)
    session.push(pcm[:20000])
    restored = second.restore_encoder(session.snapshot())
    assert np.array_equal(restored.push(pcm[20000:40000]), session.push(pcm[20000:40000]))
