"""Lost lines, played by a peer over real sockets; a real service is in tests/e2e."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import numpy as np
import pytest

from codec_core.client import EndedError, LineOptions, Notice, Stream, StreamSettings
from codec_core.errors import CodecError, InternalError, NonFiniteInputError, SessionClosedError, UnavailableError

SETTINGS = StreamSettings(levels=2)
QUICK = LineOptions(first_delay_ms=10, longest_delay_ms=50, ping_interval_ms=100, ping_timeout_ms=200, close_timeout_ms=500)
FRAME = np.zeros(1920, np.int16)


async def take(connection: Any, frames: int) -> None:
    """Receive so many bytes of audio, whatever stands between."""
    missing = frames * 3840
    while missing > 0:
        message = await connection.recv()
        missing -= len(message) if isinstance(message, bytes) else 0


async def text(connection: Any, kind: str) -> dict[str, Any]:
    while True:
        message = await connection.recv()
        if isinstance(message, str) and (fields := json.loads(message))["type"] == kind:
            return fields


async def finish(connection: Any, wire: Any, frames: int) -> None:
    """Deal with a flush and a close as a service does."""
    await text(connection, "flush")
    await connection.send(wire.flushed(frames))
    await text(connection, "close")
    await connection.close(1000, "done")


async def test_a_lost_line_is_made_again_and_nobody_notices(peer, wire):
    async def first(connection):
        assert (await text(connection, "hello"))["levels"] == 2
        await connection.send(wire.ready())
        await take(connection, 3)
        await connection.send(wire.codes(0, 1, 2))
        await connection.send(wire.codes(1, 3, 4))
        connection.transport.abort()

    async def second(connection):
        resume = await text(connection, "resume")
        assert resume["token"] == "t1"
        await connection.send(wire.ready(resumed=True, position=2 * 1920))
        for sequence in range(resume["last_sequence"] + 1, 2):
            await connection.send(wire.codes(sequence, 1 + 2 * sequence, 2 + 2 * sequence))
        await take(connection, 1)
        await connection.send(wire.codes(2, 5, 6))
        await finish(connection, wire, 3)

    notices: list[Notice] = []
    async with peer(first, second) as url, Stream(url, SETTINGS, QUICK, notify=notices.append) as stream:
        codes = await stream.convert(np.zeros(3 * 1920, np.int16))
        assert codes.tolist() == [[1, 3, 5], [2, 4, 6]]
        assert stream.flushed.frames == 3
        assert stream.stats.resumes == 1
        await stream.close()
    assert [notice.kind for notice in notices] == ["lost", "resumed"]


async def test_a_service_that_falls_silent_is_found_out(peer, wire):
    """No packet says that it is gone; only its missing pong does."""

    async def silent(connection):
        await text(connection, "hello")
        await connection.send(wire.ready())
        connection.transport.pause_reading()
        await asyncio.sleep(1)

    async def second(connection):
        await text(connection, "resume")
        await connection.send(wire.ready(resumed=True))
        await take(connection, 1)
        await connection.send(wire.codes(0, 1, 2))
        await finish(connection, wire, 1)

    async with peer(silent, second) as url, Stream(url, SETTINGS, QUICK) as stream:
        assert (await stream.convert(FRAME)).tolist() == [[1], [2]]
        await stream.close()


async def test_a_drain_is_sat_out(peer, wire):
    async def draining(connection):
        await text(connection, "hello")
        await connection.send(wire.ready())
        await take(connection, 1)
        await connection.send(json.dumps({"type": "goaway", "code": "draining", "time_left_ms": 1, "resume_token": "t9"}))
        await connection.send(json.dumps({"type": "error", "code": "draining", "subject": "service", "retry_after_ms": 20}))
        await connection.close(1012, "draining")

    async def still(connection):
        await connection.close(1012, "draining")

    async def next_one(connection):
        assert (await text(connection, "resume"))["token"] == "t9"
        await connection.send(wire.ready(resumed=True, position=1920))
        await connection.send(wire.codes(0, 1, 2))
        await finish(connection, wire, 1)

    notices: list[Notice] = []
    async with peer(draining, still, next_one) as url, Stream(url, SETTINGS, QUICK, notify=notices.append) as stream:
        assert (await stream.convert(FRAME)).tolist() == [[1], [2]]
        await stream.close()
    assert [notice.kind for notice in notices] == ["goaway", "lost", "resumed"]


@pytest.mark.parametrize("code", ["resume_refused", "resume_lost", "taken_over"])
async def test_a_stream_that_cannot_be_resumed_says_why(peer, wire, code):
    async def first(connection):
        await text(connection, "hello")
        await connection.send(wire.ready())
        await take(connection, 1)
        await connection.send(json.dumps({"type": "checkpoint", "position": 1920, "sequence": 0, "epoch": 0}))
        connection.transport.abort()

    async def second(connection):
        await text(connection, "resume")
        await connection.send(json.dumps({"type": "error", "code": code, "subject": "resume"}))
        await connection.close(1008, code)

    async with peer(first, second) as url, Stream(url, SETTINGS, QUICK) as stream:
        await stream.send(FRAME)
        with pytest.raises(CodecError) as caught:
            await stream.receive()
        assert caught.value.code == code
        for call in (stream.send(FRAME), stream.flush(), stream.receive()):
            with pytest.raises(CodecError) as again:
                await call
            assert again.value is caught.value


async def test_without_a_token_a_lost_line_is_an_error(peer, wire):
    async def only(connection):
        await text(connection, "hello")
        await connection.send(wire.ready(resume_token=None))
        connection.transport.abort()

    async with peer(only) as url, Stream(url, SETTINGS, QUICK) as stream:
        with pytest.raises(UnavailableError):
            await stream.receive()
        with pytest.raises(UnavailableError):
            await stream.flush()


async def test_after_the_grace_time_nobody_tries_again(peer, wire):
    tries = []

    async def first(connection):
        await text(connection, "hello")
        await connection.send(wire.ready(resume_grace_ms=300))
        connection.transport.abort()

    async def gone(connection):
        tries.append(connection)
        connection.transport.abort()

    async with peer(first, afterwards=gone) as url, Stream(url, SETTINGS, QUICK) as stream:
        with pytest.raises(UnavailableError):
            await stream.receive()
    assert len(tries) >= 2


@pytest.mark.parametrize("waiting", [True, False])
async def test_only_who_has_nothing_to_say_is_idle(peer, wire, waiting):
    async def impatient(connection):
        await text(connection, "hello")
        await connection.send(wire.ready())
        await connection.send(json.dumps({"type": "error", "code": "idle_timeout", "subject": "client"}))
        await connection.close(1008, "idle_timeout")

    async def second(connection):
        await text(connection, "resume")
        await connection.send(wire.ready(resumed=True))
        await take(connection, 40)
        await connection.send(wire.codes(0, 1, 2))
        await text(connection, "close")
        await connection.close(1000, "done")

    scripts = (impatient, second) if waiting else (impatient,)
    async with peer(*scripts) as url, Stream(url, SETTINGS, QUICK, paced=waiting) as stream:
        if waiting:
            await stream.send(np.zeros(40 * 1920, np.int16))
            assert (await stream.receive()).sequence == 0
        else:
            with pytest.raises(CodecError) as caught:
                await stream.receive()
            assert caught.value.code == "idle_timeout"


async def test_buffers_have_bounds_in_both_directions(peer, wire):
    async def stuck(connection):
        await text(connection, "hello")
        await connection.send(wire.ready())
        for sequence in range(200):
            await connection.send(wire.codes(sequence, 1, 2))
        connection.transport.pause_reading()
        await asyncio.sleep(1)
        connection.transport.resume_reading()
        await text(connection, "close")
        await connection.close(1000, "done")

    options = LineOptions(max_unsent_bytes=20_000, max_received_frames=10)
    async with peer(stuck) as url, Stream(url, SETTINGS, options) as stream:
        sending = asyncio.create_task(stream.send(np.zeros(8 << 20, np.int16)))
        await asyncio.sleep(0.5)
        assert not sending.done()
        assert stream.stats.waiting_frames == 10
        assert stream.stats.unsent_ms <= (20_000 + 8 * 3840) / 48
        assert [(await stream.receive()).sequence for _ in range(200)] == list(range(200))
        sending.cancel()
        await stream.close()


async def test_an_answer_left_out_is_an_error(peer, wire):
    async def leaving_out(connection):
        await text(connection, "hello")
        await connection.send(wire.ready())
        await connection.send(wire.codes(1, 1, 2))
        await connection.wait_closed()

    async with peer(leaving_out) as url, Stream(url, SETTINGS, QUICK) as stream:
        with pytest.raises(InternalError):
            await stream.receive()


async def test_what_the_source_raises_comes_out_where_the_frames_do(peer, wire):
    async def patient(connection):
        await text(connection, "hello")
        await connection.send(wire.ready())
        await connection.wait_closed()

    async with peer(patient) as url, Stream(url, SETTINGS, QUICK) as stream:
        with pytest.raises(NonFiniteInputError):
            await stream.convert(np.array([np.nan], np.float32))


async def test_closing_ends_everything_and_may_be_repeated(peer, wire):
    async def answering(connection):
        await text(connection, "hello")
        await connection.send(wire.ready())
        await text(connection, "close")
        await connection.close(1000, "done")

    async with peer(answering) as url, Stream(url, SETTINGS, QUICK) as stream:
        flushing = asyncio.create_task(stream.flush())
        await asyncio.sleep(0)
        await stream.close()
        await stream.close()
        with pytest.raises(SessionClosedError):
            await flushing
        with pytest.raises(EndedError):
            await stream.receive()
        with pytest.raises(SessionClosedError):
            await stream.send(FRAME)
        assert [frame async for frame in stream] == []


async def test_a_stream_that_was_not_opened_refuses():
    stream = Stream("ws://127.0.0.1:1", SETTINGS)
    for call in (stream.send(FRAME), stream.flush()):
        with pytest.raises(SessionClosedError):
            await call
    await stream.close()
