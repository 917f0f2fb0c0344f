"""After any error a session is as before the call, and the call may be made again."""

from __future__ import annotations

import numpy as np
import pytest

from codec_core import CodecModel
from codec_core.errors import CodecError, CodeRangeError, NonFiniteInputError, NumericOverflowError

FRAMES = 6


class InjectedError(Exception):
    pass


def stage_names(step, frame) -> list[str]:
    names: list[str] = []
    step(frame, lambda name, _values: names.append(name))
    return names


def test_encoder_failing_at_every_stage(model: CodecModel, pcm: np.ndarray, levels: int):
    frames = pcm[: FRAMES * 1920].reshape(FRAMES, 1920)
    undisturbed, session = model.encoder(levels), model.encoder(levels)
    stages = stage_names(model.encoder(levels).encode, frames[0])
    assert len(stages) == 12
    for frame in frames:
        before = session.snapshot()
        for stage in stages:

            def fail(name: str, _values: np.ndarray, stage: str = stage) -> None:
                if name == stage:
                    raise InjectedError

            with pytest.raises(InjectedError):
                session.encode(frame, fail)
            assert session.snapshot() == before, stage
        assert np.array_equal(session.encode(frame), undisturbed.encode(frame))


def test_decoder_failing_at_every_stage(model: CodecModel, rng: np.random.Generator, levels: int):
    codes = rng.integers(0, model.info.codebook_entries, (FRAMES, levels))
    undisturbed, session = model.decoder(levels), model.decoder(levels)
    stages = stage_names(model.decoder(levels).decode, codes[0])
    assert len(stages) == 13
    for frame in codes:
        before = session.snapshot()
        for stage in stages:

            def fail(name: str, _values: np.ndarray, stage: str = stage) -> None:
                if name == stage:
                    raise InjectedError

            with pytest.raises(InjectedError):
                session.decode(frame, fail)
            assert session.snapshot() == before, stage
        assert np.array_equal(session.decode(frame), undisturbed.decode(frame))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("index", [0, 1919, 2500])
def test_push_of_a_sample_that_is_not_finite(model: CodecModel, pcm: np.ndarray, levels: int, value: float, index: int):
    session, undisturbed = model.encoder(levels), model.encoder(levels)
    session.push(pcm[:700])
    undisturbed.push(pcm[:700])
    before = session.snapshot()
    bad = pcm[700 : 700 + 3 * 1920].copy()
    bad[index] = value
    with pytest.raises(NonFiniteInputError, match=rf"sample {index}\b"):
        session.push(bad)
    assert session.snapshot() == before
    assert np.array_equal(session.push(pcm[700:9000]), undisturbed.push(pcm[700:9000]))


def test_overflow_in_the_third_frame_of_a_push(model: CodecModel, pcm: np.ndarray, levels: int):
    session, undisturbed = model.encoder(levels), model.encoder(levels)
    session.push(pcm[:500])
    undisturbed.push(pcm[:500])
    before = session.snapshot()
    loud = pcm[500 : 500 + 4 * 1920].copy()
    loud[2 * 1920 : 3 * 1920] = np.float32(3e38)
    with pytest.raises(NumericOverflowError):
        session.push(loud)
    assert session.snapshot() == before
    assert np.array_equal(session.push(pcm[500:12000]), undisturbed.push(pcm[500:12000]))


def test_overflow_at_flush(model: CodecModel, levels: int):
    session = model.encoder(levels)
    session.push(np.full(1000, 3e38, np.float32))
    before = session.snapshot()
    with pytest.raises(NumericOverflowError):
        session.flush()
    assert session.snapshot() == before
    assert session.pending_samples == 1000


@pytest.mark.parametrize("bad", [-1, "entries", 2**31 - 1, 2**40])
def test_code_out_of_range(model: CodecModel, rng: np.random.Generator, levels: int, bad):
    entries = model.info.codebook_entries
    codes = rng.integers(0, entries, (levels, FRAMES))
    session, undisturbed = model.decoder(levels), model.decoder(levels)
    session.push(codes)
    undisturbed.push(codes)
    before = session.snapshot()
    wrong = codes.copy()
    wrong[7, 4] = entries if bad == "entries" else bad
    with pytest.raises(CodeRangeError):
        session.push(wrong)
    assert session.snapshot() == before
    assert np.array_equal(session.push(codes), undisturbed.push(codes))


def test_one_bad_lane_moves_no_session_of_its_batch(model: CodecModel, pcm: np.ndarray, levels: int):
    sessions = [model.encoder(levels) for _ in range(3)]
    frames = pcm[: 3 * 1920].reshape(3, 1920).copy()
    model.encode_batch(sessions, frames)
    before = [session.snapshot() for session in sessions]
    for value, error in ((np.nan, NonFiniteInputError), (3e38, NumericOverflowError)):
        bad = frames.copy()
        bad[1] = value
        with pytest.raises(error, match="lane 1"):
            model.encode_batch(sessions, bad)
        assert [session.snapshot() for session in sessions] == before
    with pytest.raises(CodecError, match="one call at a time"):
        model.encode_batch([sessions[0], sessions[1], sessions[0]], frames)
    assert [session.snapshot() for session in sessions] == before
    undisturbed = model.restore_encoder(before[2])
    assert np.array_equal(model.encode_batch(sessions, frames)[2], undisturbed.encode(frames[2]))
