from __future__ import annotations

import numpy as np

from codec_core import CodecModel
from codec_core.bench.streams import STEPS_PER_FRAME, Lanes, SteadyState, warm_up_frames
from codec_core.bench.streams import test_signal as make_signal


def test_the_context_is_full_after_the_warm_up(tiny_model: CodecModel, steady: SteadyState):
    frames = warm_up_frames(tiny_model.info.context_steps)
    assert frames * STEPS_PER_FRAME > tiny_model.info.context_steps
    encoder, decoder = tiny_model.restore_encoder(steady.encoder), tiny_model.restore_decoder(steady.decoder)
    assert encoder.position_frames == decoder.position_frames == frames == len(steady.pcm) == len(steady.codes)


def test_its_codes_are_those_of_the_signal(tiny_model: CodecModel, steady: SteadyState):
    codes = tiny_model.encoder(steady.levels).push(steady.pcm.reshape(-1))
    assert np.array_equal(codes.T, steady.codes)


def test_lanes_are_fed_different_frames(tiny_model: CodecModel, steady: SteadyState):
    lanes = Lanes(tiny_model, steady, 3)
    assert lanes.pcm(0).shape == (3, tiny_model.info.frame_samples)
    assert lanes.codes(0).shape == (3, steady.levels)
    assert np.array_equal(lanes.pcm(1)[0], lanes.pcm(0)[1])
    assert not np.array_equal(lanes.pcm(0)[0], lanes.pcm(0)[1])
    assert np.array_equal(lanes.pcm(len(steady.pcm)), lanes.pcm(0))


def test_a_duplex_step_moves_both_directions(tiny_model: CodecModel, steady: SteadyState):
    lanes = Lanes(tiny_model, steady, 2)
    lanes.encode(0)
    lanes.duplex(1)
    begun = len(steady.pcm)
    assert [session.position_frames for session in lanes.encoders] == [begun + 2] * 2
    assert [session.position_frames for session in lanes.decoders] == [begun + 1] * 2


def test_the_signal_is_the_same_everywhere_and_never_silent():
    signal = make_signal(7, 1920)
    assert np.array_equal(signal, make_signal(9, 1920)[:7])
    assert np.all(np.abs(signal).max(axis=1) > 0.1)
    assert np.abs(signal).max() < 1
