"""A stream without a socket: its worker stops between frames, comes to rest, and skips what its client has."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from codec_core.clip import encode_clip
from codec_core.errors import NonFiniteInputError
from server.codec_executor import CodecExecutor
from server.errors import OverloadedError, ProtocolError, TooSlowError
from server.live_stream import LiveStream
from server.outbox import MAX_MESSAGES, Outbox
from server.settings import Settings
from server.stream_session import StreamSession
from server.stream_snapshot import Lineage
from server.stream_state import StreamState
from server.wire import Ack, Audio, Close, Codes, Flush
from server.wire_messages import unpack_frame
from server.wire_settings import StreamSettings

LEVELS = 4


class Connection:
    """What carries a stream, as far as the stream can see."""

    def __init__(self) -> None:
        self.outbox = Outbox()
        self.gone = asyncio.Event()
        self.stream = None
        self.ended: list[Exception] = []

    def end(self, error) -> None:
        self.ended.append(error)


@pytest.fixture
async def opened(tiny_model):
    """Start streams with settings of the service's, and end them with the test."""
    executor, streams = CodecExecutor(tiny_model), []

    async def nothing(_: LiveStream) -> None:
        return

    def opened(audio_format: str = "f32le", between=nothing, **service) -> LiveStream:
        settings = StreamSettings("encode", LEVELS, audio_format, 24_000, 1, "binary", "off", tiny_model.info.numerics)
        stream = LiveStream(Lineage("00" * 16, 0.0), Settings(**service), between, streams.remove)
        stream.start(StreamSession(StreamState(settings), tiny_model, executor, stream.deliver))
        streams.append(stream)
        return stream

    opened.streams = streams
    yield opened
    for stream in streams:
        await stream.close()
    executor.close()


def codes_of(messages) -> np.ndarray:
    return np.array([np.frombuffer(unpack_frame(message)[1], "<u2") for message in messages if isinstance(message, bytes)]).T


async def test_it_works_on_without_a_connection(opened, tiny_model, pcm):
    stream = opened()
    await stream.accept(Audio(pcm[:20_000].tobytes() + b"abc"))
    await stream.come_to_rest()
    assert stream.session.position == 20_000
    assert np.array_equal(codes_of(stream.window.after(0, -1)), encode_clip(tiny_model, pcm[: 10 * 1920], LEVELS))


async def test_what_came_of_a_split_sample_is_forgotten_at_rest(opened, tiny_model, pcm):
    stream = opened()
    await stream.accept(Audio(pcm[:3000].tobytes() + b"abc"))
    await stream.come_to_rest()
    await stream.accept(Audio(pcm[3000:6000].tobytes()))
    await stream.accept(Flush())
    await stream.come_to_rest()
    assert np.array_equal(codes_of(stream.window.after(0, -1)), encode_clip(tiny_model, pcm[:6000], LEVELS))


@pytest.mark.parametrize("stop_at", [1, 3])
async def test_it_stops_between_two_frames_of_one_message(opened, pcm, stop_at):
    halting = []

    async def between(stream: LiveStream) -> None:
        if stream.session.counters.epoch_frames == stop_at and not halting:
            halting.append(asyncio.create_task(stream.halt()))
            await asyncio.sleep(0)

    stream = opened(between=between)
    await stream.accept(Audio(pcm[:19_200].tobytes()))
    await asyncio.sleep(0.2)
    await asyncio.wait_for(asyncio.gather(*halting), 5)
    assert stream.session.position == stop_at * 1920
    assert stream.session.counters.sequence == stop_at


async def test_it_stops_at_once_where_it_waits_for_input(opened, pcm):
    stream = opened()
    await stream.accept(Audio(pcm[:1920].tobytes()))
    await stream.come_to_rest()
    await asyncio.wait_for(stream.halt(), 5)
    assert stream.session.position == 1920


async def test_a_refused_message_fails_the_stream_after_what_came_before(opened, pcm):
    stream = opened()
    bad = pcm[:5000].copy()
    bad[4000] = np.nan
    await stream.accept(Audio(bad.tobytes()))
    await stream.accept(Audio(pcm[:1920].tobytes()))
    await stream.come_to_rest()
    assert isinstance(stream.failure, NonFiniteInputError)
    assert "4000" in stream.failure.subject
    assert len(stream.window) == 2


async def test_the_end_is_told_to_a_connection_or_called_out(opened, pcm):
    carried, alone = opened(), opened()
    connection = Connection()
    carried.attach(connection, ["hello"])
    for stream in (carried, alone):
        await stream.accept(Audio(pcm[:1920].tobytes()))
        await stream.accept(Close())
        await stream.come_to_rest()
    assert [type(await connection.outbox.get()) for _ in range(3)] == [str, bytes, type(None)]
    assert opened.streams == [carried]
    assert carried.is_over
    assert alone.is_over


async def test_what_the_client_holds_is_computed_and_not_sent(opened, pcm):
    stream = opened()
    stream.skip_through(0, 4)
    await stream.accept(Ack(4))
    await stream.accept(Audio(pcm[: 8 * 1920].tobytes()))
    await stream.come_to_rest()
    assert [unpack_frame(message)[0].sequence for message in stream.window.after(0, 4)] == [5, 6, 7]
    await stream.accept(Ack(8))
    await stream.come_to_rest()
    assert isinstance(stream.failure, ProtocolError)
    assert stream.failure.expected.startswith("less than 8")


@pytest.mark.parametrize("reads", [True, False])
async def test_answers_that_are_too_late_are_the_service_s_or_the_client_s_fault(opened, pcm, reads):
    stream = opened(lag_limit_ms=50)
    connection = Connection()
    stream.attach(connection, [] if reads else ["filling"] * MAX_MESSAGES)
    if reads:
        # Late before it is looked at, as when every worker is busy.
        await stream.accept(Audio(pcm[:1920].tobytes()))
        time_passes = asyncio.get_running_loop().time() + 0.1
        while asyncio.get_running_loop().time() < time_passes:
            pass
    else:
        await stream.accept(Audio(pcm[:1920].tobytes()))
        await asyncio.sleep(0.1)
        await connection.outbox.get()
    await stream.come_to_rest()
    assert [type(error) for error in connection.ended] == [OverloadedError if reads else TooSlowError]
    assert stream.failure is None


async def test_nudged_it_passes_between_two_steps(opened):
    passed = []

    async def between(stream: LiveStream) -> None:
        passed.append(stream.session.position)

    stream = opened(between=between)
    await stream.accept(Codes(()))
    await stream.come_to_rest()
    await stream.nudge()
    await stream.come_to_rest()
    assert passed == [0, 0]
