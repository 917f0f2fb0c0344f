from __future__ import annotations

import numpy as np
import pytest

from codec_core.errors import NonFiniteInputError
from codec_core.pcm import PcmIntake, to_int16
from server.errors import PayloadError
from server.sample_format import AudioIntake, AudioOutlet, frame_bytes, mulaw_decode, mulaw_encode
from server.wire_settings import StreamSettings


def settings(form: str, rate: int = 24_000, channels: int = 1, mode: str = "encode") -> StreamSettings:
    return StreamSettings(mode, 4, form, rate, channels, "binary", "off", "kyutai")


def test_mulaw_landmarks_of_the_standard():
    # ITU-T G.711, table 2a/2b: the ends of the range, the segments' first values, both zeros (scaled to 16 bits).
    negative = {0x00: -32124, 0x0F: -16764, 0x7E: -8, 0x7F: 0}
    positive = {0x80: 32124, 0x8F: 16764, 0xDF: 396, 0xEF: 132, 0xFE: 8, 0xFF: 0}
    landmarks = negative | positive
    assert {byte: int(mulaw_decode(np.array([byte], np.uint8))[0]) for byte in landmarks} == landmarks


def test_mulaw_encodes_to_the_nearest_segment_and_back():
    every = np.arange(-32768, 32768, dtype=np.int32).astype(np.int16)
    back = mulaw_decode(mulaw_encode(every)).astype(np.int32)
    size = np.abs(every.astype(np.int32))
    clipped = np.where(size > 32_635, 700, 0)
    assert np.all(np.abs(back - every) <= np.maximum(4, (size + 132) // 32 + 1 + clipped))
    assert np.all(np.diff(back) >= 0)
    values = mulaw_decode(np.arange(256, dtype=np.uint8))
    assert np.array_equal(mulaw_decode(mulaw_encode(values)), values)


@pytest.mark.parametrize("form", ["s16le", "f32le", "mulaw"])
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("rate", [24_000, 44_100])
def test_cutting_never_shows(form, channels, rate, rng):
    wave = (rng.uniform(-1, 1, (5000, channels)) * 30_000).astype("<i2")
    samples = {"s16le": wave, "f32le": wave.astype("<f4") / np.float32(40_000), "mulaw": mulaw_encode(wave)}[form]
    data = samples.tobytes()
    plain = mulaw_decode(samples) if form == "mulaw" else samples
    reference = PcmIntake(rate, channels, str(plain.dtype))
    expected = np.concatenate([reference.push(plain if channels > 1 else plain[:, 0]), reference.flush()])
    for _ in range(5):
        intake = AudioIntake(settings(form, rate, channels))
        cuts = np.sort(rng.integers(0, len(data) + 1, 40))
        pieces = [intake.push(data[start:end]) for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
        assert np.array_equal(np.concatenate([*pieces, intake.flush()]), expected)
        assert intake.received_samples == 5000


def test_a_split_sample_at_the_end_is_refused_and_may_still_be_completed():
    intake = AudioIntake(settings("s16le"))
    assert len(intake.push(b"\x00\x01\x02")) == 1
    with pytest.raises(PayloadError, match="1 bytes of a split sample"):
        intake.flush()
    assert len(intake.push(b"\x03")) == 1
    assert len(intake.flush()) == 0


def test_a_refused_piece_leaves_no_trace():
    intake = AudioIntake(settings("f32le"))
    intake.push(b"\x00\x00")
    with pytest.raises(NonFiniteInputError, match="sample 0"):
        intake.push(b"\xc0\x7f")
    assert np.array_equal(intake.push(b"\x80\x3f"), np.ones(1, np.float32))


@pytest.mark.parametrize("form", ["s16le", "f32le", "mulaw"])
def test_out_at_the_codec_rate_is_sample_for_sample(form, rng):
    pcm = rng.uniform(-1.2, 1.2, 1920).astype(np.float32)
    outlet = AudioOutlet(settings(form))
    data = outlet.push(pcm) + outlet.flush()
    expected = {"f32le": pcm, "s16le": to_int16(pcm), "mulaw": mulaw_encode(to_int16(pcm))}[form]
    assert data == expected.tobytes()
    assert outlet.sent_samples == 1920


@pytest.mark.parametrize("rate", [8_000, 22_050, 48_000])
def test_out_at_another_rate_starts_anew_after_flush(rate, rng):
    pcm = rng.uniform(-1, 1, (5, 1920)).astype(np.float32)
    outlet = AudioOutlet(settings("f32le", rate))
    runs = [b"".join([outlet.push(frame) for frame in pcm] + [outlet.flush()]) for _ in range(2)]
    assert runs[0] == runs[1]
    assert abs(len(runs[0]) // 4 - pcm.size * rate / 24_000) <= 1


def test_bytes_of_a_frame():
    assert frame_bytes(settings("s16le")) == 3840
    assert frame_bytes(settings("f32le", 44_100, 2)) == 3528 * 8
    assert frame_bytes(settings("mulaw", 8_000)) == 640
    assert frame_bytes(settings("s16le", mode="decode")) == 8
