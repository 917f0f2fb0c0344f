"""What one stream does, or does not do, is nothing to another, nor to what comes after it in the same stream."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from codec_core.clip import decode_clip, encode_clip
from codec_core.pcm import PcmIntake

LEVELS = 8


@pytest.mark.parametrize("rate_hz", [16_000, 44_100])
async def test_a_pause_loses_nothing_of_resampled_sound(service, tiny_model, stream, speech, rate_hz):
    """ANCHORS B7, B8: no timer empties the resampler, and pieces too short for a single sample out are no matter."""
    sound = speech[:20_000]
    intake = PcmIntake(rate_hz, 1, "int16")
    expected = encode_clip(tiny_model, np.concatenate([intake.push(sound), intake.flush()]), LEVELS)
    async with stream(service, f"levels={LEVELS}&sample_rate={rate_hz}") as client:
        await client.until("ready")
        for piece in (sound[:3], sound[3:5], sound[5:10_001], sound[10_001:10_002], sound[10_002:]):
            await client.connection.send(piece.tobytes())
            await asyncio.sleep(0.3 if len(piece) > 1_000 else 0.02)
        await client.send("flush")
        flushed = await client.until("flushed")
    assert flushed["received_samples"] == len(sound)
    assert np.array_equal(client.codes(), expected)


async def test_codes_out_of_range_end_their_own_stream_and_no_other(service, tiny_model, stream, speech):
    """ANCHORS A7, A8: beside streams that send them in every second frame the others are answered to the bit."""
    codes = encode_clip(tiny_model, speech, LEVELS)
    expected = decode_clip(tiny_model, codes)

    async def good() -> None:
        async with stream(service, f"mode=decode&levels={LEVELS}&format=f32le") as client:
            for frame in codes.T.astype("<u2"):
                await client.connection.send(frame.tobytes())
                await asyncio.sleep(0)
            await client.send("flush")
            await client.until("flushed")
        assert np.array_equal(client.pcm("<f4"), expected)

    async def bad(index: int) -> None:
        broken = codes.T.astype("<u2")
        broken[index, index % LEVELS] = tiny_model.info.codebook_entries + index
        async with stream(service, f"mode=decode&levels={LEVELS}") as client:
            for frame in broken[: index + 1]:
                await client.connection.send(frame.tobytes())
            assert await client.closing() == (1007, "code_range")
        assert len(client.frames) == index

    await asyncio.gather(*(good() for _ in range(4)), *(bad(index) for index in range(8)))
