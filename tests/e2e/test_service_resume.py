"""A connection is lost, the stream is not: resumed in the same process, bit for bit as if nothing had happened."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import pytest

from codec_core.clip import decode_clip, encode_clip
from codec_core.pcm import PcmIntake, to_int16
from server.sample_format import AudioOutlet, mulaw_decode, mulaw_encode
from server.wire_settings import StreamSettings
from tests.e2e.service_load import load_of, wait_for

FRAME_SAMPLES = 1920
LEVELS = 8


def undisturbed(model, form: str, rate: int, channels: int, data: bytes) -> np.ndarray:
    """What the library makes of the same bytes in one piece."""
    dtype = {"s16le": "<i2", "f32le": "<f4", "mulaw": "u1"}[form]
    samples = np.frombuffer(data, dtype)
    samples = mulaw_decode(samples) if form == "mulaw" else samples
    samples = samples.reshape(-1, channels) if channels > 1 else samples
    intake = PcmIntake(rate, channels, str(samples.dtype))
    return encode_clip(model, np.concatenate([intake.push(samples), intake.flush()]), LEVELS)


@pytest.mark.parametrize("by_query", [False, True])
async def test_encoding_resumes_bit_for_bit(service, resuming, tiny_model, speech, by_query):
    client = resuming(f"mode=encode&levels={LEVELS}", speech.tobytes())
    for frame in (4, 4, 17, 30):
        await client.travel(service, frame, by_query=by_query)
    flushed = await client.finish(service)
    assert np.array_equal(client.codes(), encode_clip(tiny_model, speech, LEVELS))
    assert flushed["received_samples"] == flushed["samples"] == len(speech)
    assert [ready["resumed"] for ready in client.readies] == [False, True, True, True, True]
    assert len({ready["session"] for ready in client.readies}) == 1
    assert len({ready["resume_token"] for ready in client.readies}) == 5
    await wait_for(service, "parked", 0)


@pytest.mark.parametrize(
    "audio", [("f32le", 24_000, 1), ("mulaw", 8_000, 1), ("s16le", 44_100, 2), ("f32le", 48_000, 2), ("s16le", 16_000, 1)]
)
async def test_every_format_and_rate_resumes_bit_for_bit(service, resuming, tiny_model, speech, audio):
    form, rate, channels = audio
    stereo = np.stack([speech, speech[::-1]], axis=1)[:, :channels]
    pcm = {"s16le": stereo, "f32le": (stereo / 32_768).astype("<f4"), "mulaw": mulaw_encode(stereo)}[form]
    client = resuming(f"levels={LEVELS}&format={form}&sample_rate={rate}&channels={channels}", pcm.tobytes(), pcm[0].nbytes)
    for frame in (3, 9):
        await client.travel(service, frame)
    flushed = await client.finish(service)
    assert np.array_equal(client.codes(), undisturbed(tiny_model, form, rate, channels, pcm.tobytes()))
    assert flushed["received_samples"] == len(pcm)
    assert [ready.get("resampler") for ready in client.readies] == [None] + [None if rate == 24_000 else "continued"] * 2


@pytest.mark.parametrize("audio", [("f32le", 24_000), ("s16le", 24_000), ("f32le", 48_000), ("mulaw", 8_000)])
async def test_decoding_resumes_bit_for_bit(service, resuming, tiny_model, speech, audio):
    form, rate = audio
    codes = encode_clip(tiny_model, speech, LEVELS)
    query = f"mode=decode&levels={LEVELS}&format={form}&sample_rate={rate}"
    client = resuming(query, codes.T.astype("<u2").tobytes(), 2 * LEVELS)
    for frame in (2, 11, 29):
        await client.travel(service, frame)
    await client.finish(service)
    settings = StreamSettings("decode", LEVELS, form, rate, 1, "binary", "off", tiny_model.info.numerics)
    outlet = AudioOutlet(settings)
    frames = decode_clip(tiny_model, codes).reshape(-1, FRAME_SAMPLES)
    assert b"".join(client.payloads) == b"".join([outlet.push(frame) for frame in frames] + [outlet.flush()])


async def test_an_echo_with_json_codes_resumes(service, resuming, tiny_model, speech):
    client = resuming(f"mode=echo&levels={LEVELS}&echo_codes=on&codes=json", speech.tobytes())
    for frame in (5, 22):
        await client.travel(service, frame)
    await client.finish(service)
    expected = encode_clip(tiny_model, speech, LEVELS)
    texts = [json.loads(payload) for payload in client.payloads[::2]]
    assert [text["codes"] for text in texts] == expected.T.tolist()
    assert b"".join(client.payloads[1::2]) == to_int16(decode_clip(tiny_model, expected)).astype("<i2").tobytes()


async def test_what_came_is_answered_while_nobody_is_there(service, resuming, tiny_model, speech):
    client = resuming(f"levels={LEVELS}", speech[: 10 * FRAME_SAMPLES].tobytes())
    connection = await client.open(service)
    await client.send(connection)
    await client.until_frame(connection, 0)
    await asyncio.sleep(0.2)
    await client.lose(connection)
    connection = await client.open(service)
    assert client.readies[-1]["position"] == 10 * FRAME_SAMPLES
    assert client.readies[-1]["next_sequence"] == 10
    await client.until_frame(connection, 9)
    await connection.close()
    assert np.array_equal(client.codes(), encode_clip(tiny_model, speech[: 10 * FRAME_SAMPLES], LEVELS))


async def test_a_second_connection_takes_a_half_open_one_over(service, resuming, tiny_model, speech):
    """Half-open peers: the place of a client whose network died is its own again at once."""
    client = resuming(f"levels={LEVELS}", speech.tobytes())
    first = await client.open(service)
    await first.send(speech[:5001].tobytes() + b"x")
    await client.until_frame(first, 1)
    await client.finish(service)
    await first.wait_closed()
    assert (first.close_code, first.close_reason) == (1008, "taken_over")
    assert np.array_equal(client.codes(), encode_clip(tiny_model, speech, LEVELS))
    assert client.readies[1]["position"] == 5001
    await wait_for(service, "streams", 0)


@pytest.mark.parametrize("by_query", [False, True])
async def test_a_full_service_still_gives_a_client_its_own_place_back(start_service, resuming, stream, speech, by_query):
    """ANCHORS E1, G5: the place of a half-open connection is its client's, and nobody else's in between."""
    service = start_service("--max-sessions", "1", "--max-address-sessions", "1")
    client = resuming(f"levels={LEVELS}", speech.tobytes())
    first = await client.open(service)
    await first.send(client.data[:20_000])
    await client.until_frame(first, 2)

    async def knock() -> None:
        async with stream(service, "levels=1") as other:
            assert await other.closing() == (1013, "capacity")

    knocking = [asyncio.create_task(knock()) for _ in range(20)]
    second = await client.open(service, by_query=by_query)
    await asyncio.gather(*knocking)
    await first.wait_closed()
    assert first.close_reason == "taken_over"
    await client.lose(second)
    await wait_for(service, "streams", 0)
    flushed = await client.finish(service)
    assert flushed["received_samples"] == len(speech)
    assert (await load_of(service))["streams"] == 0


async def test_a_bad_token_takes_no_place_and_ends_no_stream(start_service, stream):
    service = start_service("--max-sessions", "1")
    async with stream(service, "levels=1") as first:
        await first.until("ready")
        async with stream(service) as other:
            await other.send("resume", token="A" * 100, last_sequence=-1)
            assert await other.closing() == (1008, "resume_refused")
        await first.send("ping")
        await first.until("pong")


async def test_who_has_not_said_what_it_wants_has_no_place(start_service, stream):
    """ANCHORS G5: connections that stand there fill nothing."""
    service = start_service("--max-sessions", "1")
    async with stream(service) as silent, stream(service, "levels=1") as client:
        await client.until("ready")
        await silent.send("hello", levels=1)
        assert await silent.closing() == (1013, "capacity")


async def test_a_reset_counts_epochs_across_a_resume(service, resuming, speech):
    client = resuming(f"levels={LEVELS}", speech.tobytes())
    connection = await client.open(service)
    await connection.send(speech[: 6 * FRAME_SAMPLES].tobytes())
    await client.until_frame(connection, 3)
    await connection.send(json.dumps({"type": "reset"}))
    await connection.send(speech[: 2 * FRAME_SAMPLES + 5].tobytes())
    await client.until_frame(connection, 5)
    await asyncio.sleep(0.2)
    # The client has not looked yet whether its reset was done.
    await client.lose(connection)
    connection = await client.open(service)
    ready = client.readies[-1]
    assert (ready["epoch"], ready["position"], ready["next_sequence"]) == (1, 2 * FRAME_SAMPLES + 5, 2)
    assert (await client.until(connection, "reset_done"))["epoch"] == 1
    await client.until_frame(connection, 1)
    await connection.close()
    assert client.payloads[6:] == client.payloads[:2]


async def test_old_epochs_are_sent_again_where_the_client_says_how_far_it_came(service, stream, speech):
    async with stream(service, f"levels={LEVELS}") as client:
        token = (await client.until("ready"))["resume_token"]
        await client.connection.send(speech[: 3 * FRAME_SAMPLES].tobytes())
        await client.send("reset")
        await client.connection.send(speech[: 2 * FRAME_SAMPLES].tobytes())
        await client.send("flush")
        await client.until("flushed")
        seen = [header.sequence for header, _ in client.frames]
        client.connection.transport.abort()
    assert seen == [0, 1, 2, 0, 1]
    async with stream(service) as client:
        await client.send("resume", token=token, last_sequence=0, epoch=0)
        await client.until("flushed")
        assert [text["type"] for text in client.texts] == ["ready", "reset_done", "flushed"]
        assert [header.sequence for header, _ in client.frames] == [1, 2, 0, 1]
        await client.send("ack", sequence=2, epoch=0)
        await client.send("ack", sequence=1)
        await client.send("close")
        assert await client.closing() == (1000, "done")
