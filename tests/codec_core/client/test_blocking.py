"""Lost lines and ends; a real service is in tests/e2e."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest

from codec_core.client import BlockingStream, LineOptions, RemoteError, StreamSettings
from codec_core.errors import UnavailableError

SETTINGS = StreamSettings(levels=2)
QUICK = LineOptions(first_delay_ms=10, longest_delay_ms=50, close_timeout_ms=500)


async def test_calls_wait_on_another_thread(peer, wire):
    async def service(connection):
        await connection.recv()
        await connection.send(wire.ready())
        await connection.recv()
        await connection.send(wire.codes(0, 1, 2))
        await connection.wait_closed()

    def use(url: str) -> list[int]:
        with BlockingStream(url, SETTINGS, QUICK) as stream:
            stream.send(np.zeros(1920, np.int16))
            frame = stream.receive()
            assert frame.codes is not None
            return frame.codes.tolist()

    async with peer(service) as url:
        assert await asyncio.to_thread(use, url) == [1, 2]


async def test_what_the_source_raises_comes_out_and_the_thread_ends(peer, wire):
    async def service(connection):
        await connection.recv()
        await connection.send(wire.ready())
        await connection.wait_closed()

    def source():
        yield np.zeros(100, np.int16)
        raise ZeroDivisionError

    def use(url: str) -> None:
        with BlockingStream(url, SETTINGS, QUICK) as stream:
            for _ in stream.run(source()):
                pass

    async with peer(service) as url:
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(use, url)
    assert not [thread for thread in threading.enumerate() if thread.name == "mimi-stream"]


async def test_a_service_that_is_not_there_leaves_no_thread():
    with pytest.raises(UnavailableError):
        await asyncio.to_thread(BlockingStream("ws://127.0.0.1:1").__enter__)
    assert not [thread for thread in threading.enumerate() if thread.name == "mimi-stream"]


async def test_iteration_ends_with_the_stream(peer, wire):
    async def service(connection):
        await connection.recv()
        await connection.send(wire.ready())
        await connection.send(wire.codes(0, 1, 2))
        await connection.send('{"type":"error","code":"session_timeout","subject":"session"}')
        await connection.close(1008, "session_timeout")

    def use(url: str) -> list[object]:
        with BlockingStream(url, SETTINGS, QUICK) as stream:
            seen: list[object] = [stream.receive().sequence]
            for call in (lambda: list(stream), stream.flush):
                with pytest.raises(RemoteError) as caught:
                    call()
                seen.append(caught.value.code)
        return seen

    async with peer(service) as url:
        assert await asyncio.to_thread(use, url) == [0, "session_timeout", "session_timeout"]
