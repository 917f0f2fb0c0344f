from __future__ import annotations

import sys

import numpy as np
import pytest

from codec_core import opus
from codec_core.errors import OpusDataError, UnavailableError
from codec_core.opus import OpusDecoder, OpusEncoder
from codec_core.opus_packets import OpusPacket, packet_samples


def tone(samples: int, rate_hz: int) -> np.ndarray:
    return (0.4 * np.sin(2 * np.pi * 440 * np.arange(samples) / rate_hz)).astype(np.float32)


def whole(packet: bytes, *, begins: bool = False) -> OpusPacket:
    samples = packet_samples(packet)
    return OpusPacket(packet, samples, 0, samples, begins=begins)


@pytest.mark.parametrize("rate_hz", [24_000, 48_000])
def test_sound_comes_back_after_the_pre_skip(rate_hz):
    encoder, decoder = OpusEncoder(rate_hz), OpusDecoder()
    sound = tone(10 * encoder.packet_samples, rate_hz)
    packets = [encoder.encode(piece) for piece in sound.reshape(10, -1)]
    assert {packet_samples(packet) for packet in packets} == {3840}
    pcm = np.concatenate([decoder.decode(whole(packet)) for packet in packets])[encoder.head.pre_skip :]
    expected = tone(len(pcm), 48_000)
    error = pcm[4800:] - expected[4800:]
    assert 10 * np.log10(np.mean(expected**2) / np.mean(error**2)) > 15


def test_the_same_sound_makes_the_same_packets():
    pieces = tone(5 * 1920, 24_000).reshape(5, -1)
    first, second = ([encoder.encode(piece) for piece in pieces] for encoder in (OpusEncoder(), OpusEncoder()))
    assert first == second


def test_only_what_is_audio_is_returned_with_its_gain():
    encoder, decoder = OpusEncoder(), OpusDecoder()
    packet = encoder.encode(tone(1920, 24_000))
    pcm = decoder.decode(whole(packet, begins=True))
    part = decoder.decode(OpusPacket(packet, 3840, 100, 200, begins=True, gain_q8=256 * 20))
    assert np.allclose(part, 10 * pcm[100:200], rtol=1e-5)


def test_bytes_that_are_no_packet_are_refused_and_harm_nothing(rng):
    decoder, encoder = OpusDecoder(), OpusEncoder()
    good = encoder.encode(tone(1920, 24_000))
    refused = 0
    for _ in range(300):
        data = rng.bytes(int(rng.integers(1, 400)))
        try:
            samples = packet_samples(data)
            assert len(decoder.decode(OpusPacket(data, samples, 0, samples, begins=False))) == samples
        except OpusDataError:
            refused += 1
    assert refused
    assert len(decoder.decode(whole(good, begins=True))) == 3840


def test_a_decoder_that_makes_another_length_is_not_believed():
    packet = OpusEncoder().encode(tone(1920, 24_000))
    with pytest.raises(OpusDataError, match="3840 samples, expected 960"):
        OpusDecoder().decode(OpusPacket(packet, 960, 0, 960, begins=True))


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    assert not opus.is_installed()
    for make in (OpusDecoder, OpusEncoder):
        with pytest.raises(UnavailableError, match=r"mimi-server\[opus\]"):
            make()
