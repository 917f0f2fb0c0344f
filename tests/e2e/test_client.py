"""The client against a real service: what it hands out is what the library computes, and what it raises is what was refused."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator

import numpy as np
import pytest

from codec_core.client import BlockingStream, LineOptions, RemoteError, Stream, StreamSettings
from codec_core.clip import decode_clip, encode_clip
from codec_core.errors import CodeRangeError, NonFiniteInputError, SettingError, UnavailableError
from codec_core.pcm import to_float32, to_int16

LEVELS = 4
ENCODE = StreamSettings(levels=LEVELS)


async def test_sound_to_codes_and_on_after_the_flush(service, tiny_model, speech):
    expected = encode_clip(tiny_model, speech, LEVELS)
    async with Stream(service.url, ENCODE) as stream:
        assert stream.ready.model["sha256"] == tiny_model.info.sha256
        assert np.array_equal(await stream.convert(speech), expected)
        assert (stream.flushed.samples, stream.flushed.frames) == (len(speech), expected.shape[1])
        await stream.reset()
        pieces = [to_float32(speech[start : start + 1234]) for start in range(0, len(speech), 1234)]
        frames = [frame async for frame in stream.run(pieces)]
        assert np.array_equal(np.array([frame.codes for frame in frames]).T, expected)
        assert [frame.sequence for frame in frames] == list(range(len(frames)))
        assert [frame.position for frame in frames] == [1920 * index for index in range(len(frames))]
        session = tiny_model.encoder(LEVELS)
        twice = [session.push(speech), session.flush(), session.push(speech), session.flush()]
        assert np.array_equal(await stream.convert(speech), np.concatenate(twice[2:], axis=1))


async def test_codes_to_sound(service, tiny_model, speech):
    codes = encode_clip(tiny_model, speech, LEVELS)
    async with Stream(service.url, StreamSettings("decode", LEVELS, "f32le")) as stream:
        assert np.array_equal(await stream.convert(codes), decode_clip(tiny_model, codes))
    async with Stream(service.url, StreamSettings("decode", LEVELS)) as stream:
        assert np.array_equal(to_int16(await stream.convert(codes)), to_int16(decode_clip(tiny_model, codes)))


async def test_echo_with_codes(service, tiny_model, speech):
    async def microphone() -> AsyncIterator[np.ndarray]:
        for start in range(0, len(speech), 960):
            yield speech[start : start + 960]
            await asyncio.sleep(0)

    expected = encode_clip(tiny_model, speech, LEVELS)
    async with Stream(service.url, StreamSettings("echo", LEVELS, echo_codes=True)) as stream:
        frames = [frame async for frame in stream.run(microphone())]
    assert np.array_equal(np.array([frame.codes for frame in frames if frame.codes is not None]).T, expected)
    sound = np.concatenate([frame.pcm for frame in frames if frame.pcm is not None])
    assert np.array_equal(to_int16(sound), to_int16(decode_clip(tiny_model, expected)))
    assert {frame.position for frame in frames[:4]} == {0, 1920}


async def test_resampled_sound_keeps_its_length(service, speech):
    settings = StreamSettings("echo", LEVELS, sample_rate_hz=48_000, channels=2)
    async with Stream(service.url, settings) as stream:
        sound = await stream.convert(np.repeat(speech, 4).reshape(-1, 2))
        assert stream.flushed.received_samples == 2 * len(speech)
        assert len(sound) == stream.flushed.sent_samples


async def test_many_at_once_stay_apart(service, tiny_model, speech):
    async def one(index: int) -> None:
        mine = np.roll(speech, 4321 * index)
        async with Stream(service.url, ENCODE) as stream:
            assert np.array_equal(await stream.convert(mine), encode_clip(tiny_model, mine, LEVELS))

    await asyncio.gather(*(one(index) for index in range(6)))


async def test_paced_input_takes_its_time_and_latency_is_told(service, tiny_model, speech):
    second = speech[: 12 * 1920]
    async with Stream(service.url, ENCODE, paced=True) as stream:
        started_s = asyncio.get_running_loop().time()
        assert np.array_equal(await stream.convert(second), encode_clip(tiny_model, second, LEVELS))
        assert asyncio.get_running_loop().time() - started_s >= 0.95
        stats = stream.stats
    assert (stats.answered_frames, stats.lag_ms, stats.unsent_ms) == (12, 0, 0)
    p50, most = stats.latency_ms["p50"], stats.latency_ms["max"]
    assert p50 is not None
    assert most is not None
    assert 0 < p50 <= most


async def test_refusals_come_as_the_errors_they_are(service):
    with pytest.raises(SettingError, match="levels"):
        await Stream(service.url, StreamSettings(levels=33)).__aenter__()
    async with Stream(service.url, StreamSettings("decode", LEVELS)) as stream:
        with pytest.raises(CodeRangeError):
            await stream.send(np.full(LEVELS, 32))
        await stream.send(b"\xff" * 2 * LEVELS)
        with pytest.raises(CodeRangeError, match=r"frame 0.*level 0"):
            await stream.flush()
    async with Stream(service.url, StreamSettings(sample_format="f32le")) as stream:
        await stream.send(np.array([np.nan], "<f4").tobytes())
        with pytest.raises(NonFiniteInputError):
            await stream.receive()


async def test_a_full_service_is_waited_for(start_service, tiny_model, speech):
    service = start_service("--max-sessions", "1", "--retry-after-ms", "50")
    async with Stream(service.url, ENCODE) as first:
        with pytest.raises(RemoteError) as caught:
            await Stream(service.url, ENCODE).__aenter__()
        assert (caught.value.code, caught.value.retry_after_ms) == ("capacity", 50)
        waiting = asyncio.create_task(Stream(service.url, ENCODE, LineOptions(wait_for_place_ms=20_000)).__aenter__())
        await asyncio.sleep(0.2)
        assert not waiting.done()
        await first.close()
        second = await waiting
        assert np.array_equal(await second.convert(speech), encode_clip(tiny_model, speech, LEVELS))
        await second.close()


async def test_keys(start_service, monkeypatch):
    monkeypatch.setenv("MIMI_API_KEYS", "right")
    service = start_service()
    async with Stream(service.url, ENCODE, LineOptions(key="right")) as stream:
        assert (await stream.convert(np.zeros(1920, np.int16))).shape == (LEVELS, 1)
    for key in (None, "wrong"):
        with pytest.raises(RemoteError) as caught:
            await Stream(service.url, ENCODE, LineOptions(key=key)).__aenter__()
        assert caught.value.code == "unauthorized"


async def test_a_client_that_does_not_read_is_put_off_and_loses_nothing(start_service, tiny_model, speech):
    service = start_service("--send-timeout-ms", "300", "--allow-free-pace")
    settings = StreamSettings("decode", LEVELS, "f32le", free_pace=True)
    codes = np.tile(encode_clip(tiny_model, speech, LEVELS), 40)
    notices = []
    options = LineOptions(max_received_frames=2, first_delay_ms=10)
    async with Stream(service.url, settings, options, notify=notices.append) as stream:
        frames = stream.run([codes])
        received = [await anext(frames)]
        await asyncio.sleep(2.5)
        received += [frame async for frame in frames]
    assert np.array_equal(np.concatenate([frame.pcm for frame in received]), decode_clip(tiny_model, codes))
    assert "lost" in [notice.kind for notice in notices]


async def test_the_service_that_is_not_there_is_named():
    with pytest.raises(UnavailableError, match="can be reached"):
        await Stream("ws://127.0.0.1:1", ENCODE).__aenter__()


def test_without_an_event_loop(service, tiny_model, speech):
    expected = encode_clip(tiny_model, speech, LEVELS)
    with BlockingStream(service.url, ENCODE) as stream:
        assert np.array_equal(stream.convert(speech), expected)
        stream.reset()
        assert np.array_equal(np.array([frame.codes for frame in stream.run([speech[:5000], speech[5000:]])]).T, expected)
        stream.reset()
        sending = threading.Thread(target=lambda: (stream.send(speech), stream.flush()))
        sending.start()
        received = [stream.receive().codes for _ in range(expected.shape[1])]
        sending.join()
        assert np.array_equal(np.array(received).T, expected)
        assert stream.stats.answered_frames == expected.shape[1]
        assert stream.ready.levels == LEVELS
    with pytest.raises(SettingError), BlockingStream(service.url, StreamSettings(levels=99)):
        pass


async def test_the_end_of_a_service_is_told(start_service):
    service = start_service("--drain-timeout-ms", "100")
    notices = []
    options = LineOptions(give_up_ms=300)
    async with Stream(service.url, ENCODE, options, notify=lambda notice: notices.append(notice.kind)) as stream:
        service.process.send_signal(signal.SIGTERM)
        with pytest.raises((UnavailableError, RemoteError)):
            await stream.receive()
    assert notices == ["goaway", "lost"]
