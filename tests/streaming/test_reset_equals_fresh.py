"""After reset() a session is a new one, bit for bit, whatever happened to it before."""

from __future__ import annotations

import numpy as np
import pytest

from codec_core import CodecModel
from codec_core.errors import CodeRangeError, NonFiniteInputError

FRAMES = 9


class InjectedError(Exception):
    pass


def _fail_at(stage: str):
    def observe(name: str, _values: np.ndarray) -> None:
        if name == stage:
            raise InjectedError(stage)

    return observe


def _nothing_more(session, frame) -> None:
    pass


def _refused_nan(session, frame) -> None:
    bad = frame.copy()
    bad[1234] = np.nan
    with pytest.raises(NonFiniteInputError):
        session.encode(bad)


def _refused_code(session, frame) -> None:
    with pytest.raises(CodeRangeError):
        session.decode(np.full_like(frame, -1))


def _failure_in_mid_step(stage: str):
    def fail(session, frame) -> None:
        with pytest.raises(InjectedError):
            (session.encode if stage.startswith("encoder") else session.decode)(frame, _fail_at(stage))

    return fail


ENCODER_TROUBLE = [_nothing_more, _refused_nan, _failure_in_mid_step("encoder.transformer")]
DECODER_TROUBLE = [_nothing_more, _refused_code, _failure_in_mid_step("decoder.model.6")]


@pytest.mark.parametrize("trouble", ENCODER_TROUBLE, ids=["none", "NaN", "mid-step"])
def test_encoder(model: CodecModel, pcm: np.ndarray, levels: int, trouble):
    frames = pcm[: FRAMES * 1920]
    fresh = model.encoder(levels)
    expected = fresh.push(frames)
    session = model.encoder(levels)
    session.push(pcm[5000 : 5000 + 7 * 1920 + 100])
    trouble(session, pcm[:1920])
    session.reset()
    assert (session.position_frames, session.pending_samples) == (0, 0)
    assert session.snapshot() == model.encoder(levels).snapshot()
    assert np.array_equal(session.push(frames), expected)
    assert session.snapshot() == fresh.snapshot()


@pytest.mark.parametrize("trouble", DECODER_TROUBLE, ids=["none", "bad code", "mid-step"])
def test_decoder(model: CodecModel, rng: np.random.Generator, levels: int, trouble):
    codes = rng.integers(0, model.info.codebook_entries, (levels, FRAMES))
    fresh = model.decoder(levels)
    expected = fresh.push(codes)
    session = model.decoder(levels)
    session.push(codes[:, ::-1])
    trouble(session, codes[:, 0])
    session.reset()
    assert session.position_frames == 0
    assert session.snapshot() == model.decoder(levels).snapshot()
    assert np.array_equal(session.push(codes), expected)
    assert session.snapshot() == fresh.snapshot()
