"""Whole clips are loops over a session."""

from __future__ import annotations

import numpy as np
import pytest

from codec_core import CodecModel
from codec_core.clip import decode_clip, encode_clip
from codec_core.errors import InputShapeError


def test_a_clip_is_its_stream(tiny_model: CodecModel, pcm: np.ndarray):
    session = tiny_model.encoder(8)
    expected = np.concatenate([session.push(pcm), session.flush()], axis=1)
    seen: list[tuple[int, int]] = []
    codes = encode_clip(tiny_model, pcm, levels=8, progress=lambda done, total: seen.append((done, total)))
    assert np.array_equal(codes, expected)
    assert seen == [(done, 41) for done in range(1, 42)]
    assert np.array_equal(decode_clip(tiny_model, codes), tiny_model.decoder(8).push(codes))


def test_empty_clips(tiny_model: CodecModel):
    assert encode_clip(tiny_model, np.zeros(0, np.float32), levels=8).shape == (8, 0)
    assert decode_clip(tiny_model, np.zeros((8, 0), np.int32)).shape == (0,)


def test_codes_without_frames_axis_are_refused(tiny_model: CodecModel):
    for codes in (np.zeros(8, np.int32), np.int32(3), np.zeros((8, 2, 2), np.int32)):
        with pytest.raises(InputShapeError):
            decode_clip(tiny_model, codes)
