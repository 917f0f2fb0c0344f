"""Streams far past the ring, in flat memory."""

from __future__ import annotations

import resource

import numpy as np
import pytest

from codec_core import CodecModel
from codec_core.errors import SettingError
from codec_core.snapshot import SnapshotContent, pack, unpack

FRAMES = 20_000
WARM_UP_FRAMES = 500
BLOCK_FRAMES = 100


def _peak_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.slow
def test_memory_is_flat_over_a_long_stream(tiny_model: CodecModel, rng: np.random.Generator):
    encoder, decoder = tiny_model.encoder(8), tiny_model.decoder(8)
    block = (0.2 * rng.standard_normal(BLOCK_FRAMES * 1920)).astype(np.float32)
    peak_kib = 0
    for done in range(0, FRAMES, BLOCK_FRAMES):
        if done == WARM_UP_FRAMES:
            peak_kib = _peak_kib()
        pcm = decoder.push(encoder.push(block))
        assert np.isfinite(pcm).all()
    assert encoder.position_frames == decoder.position_frames == FRAMES
    assert _peak_kib() - peak_kib < 4096


def test_what_left_the_ring_is_forgotten(tiny_model: CodecModel, pcm: np.ndarray):
    """Streams that differ only in a distant past agree once two layers' worth of context lies between."""
    reach_frames = 40
    recent = np.resize(pcm, reach_frames * 1920)
    codes = []
    for past in (pcm[: 8 * 1920], pcm[3000 : 3000 + 8 * 1920]):
        session = tiny_model.encoder(32)
        session.push(past)
        codes.append(session.push(recent))
    assert not np.array_equal(codes[0][:, 0], codes[1][:, 0])
    assert np.array_equal(codes[0][:, -5:], codes[1][:, -5:])


def test_a_stream_at_the_end_of_its_positions_is_refused(tiny_model: CodecModel, pcm: np.ndarray):
    """The rotary position is exact up to 2^24 steps, 7.7 days; a restored snapshot brings us there at once."""
    session = tiny_model.encoder(8)
    session.push(pcm[: 20 * 1920])
    content = unpack(session.snapshot(), tiny_model.info, "encoder")
    last_frame = 2**23 - 1
    state = last_frame.to_bytes(8, "little") + content.state[8:]
    late = tiny_model.restore_encoder(pack(tiny_model.info, "encoder", SnapshotContent(8, content.pending, state)))
    late.encode(pcm[:1920])
    with pytest.raises(SettingError, match="stream position"):
        late.encode(pcm[:1920])
    late.reset()
    assert np.array_equal(late.push(pcm[:1920]), tiny_model.encoder(8).push(pcm[:1920]))
