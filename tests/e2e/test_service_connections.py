"""TCP connections: how many one address may have, whatever becomes of them, and what the others notice."""

from __future__ import annotations

import asyncio
import contextlib
import json
import selectors
import socket
import time

import httpx
import numpy as np
import pytest

from codec_core.clip import encode_clip
from tests.e2e.test_service_bounds import HANDSHAKE, everything, metrics_of, raw_socket, wait_for

CROWD, SHARE = 400, 100
HALF_A_HANDSHAKE = HANDSHAKE[:60]


@pytest.fixture
def crowd():
    """crowd(service, count, said): connections that say this and then nothing."""
    with contextlib.ExitStack() as stack:

        def gather(service, count: int, said: bytes = b"") -> list[socket.socket]:
            connections = [stack.enter_context(raw_socket(service)) for _ in range(count)]
            for connection in connections:
                connection.sendall(said)
            return connections

        yield gather


async def let_in(service, crowd) -> socket.socket:
    """Open a stream as soon as there is room for its connection."""
    for _ in range(500):
        (connection,) = crowd(service, 1, HANDSHAKE)
        if (await asyncio.to_thread(connection.recv, 1000)).startswith(b"HTTP/1.1 101"):
            return connection
        await asyncio.sleep(0.02)
    raise AssertionError("there was no room")


async def dropped(service) -> float:
    """Ask how many connections were refused, as soon as there is room for the question."""
    async with httpx.AsyncClient(base_url=service.url) as http:
        for _ in range(500):
            if (await http.get("/healthz")).status_code == 200:
                break
            await asyncio.sleep(0.02)
    return (await metrics_of(service))['mimi_dropped_connections_total{code="address_connections"}']


async def test_connections_are_limited_and_told_so(start_service):
    service = start_service("--max-connections", "3")
    await wait_for(service, "mimi_connections", 1)
    crowd = [raw_socket(service) for _ in range(3)]
    try:
        # The fourth may be the first to be taken; but four are not.
        await asyncio.sleep(0.2)
        with raw_socket(service) as fourth:
            answer = await asyncio.to_thread(everything, fourth)
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 ")
        assert b"x-mimi-error: connections" in head
        assert json.loads(body)["error"]["found"] == "3 of 3 connections"
    finally:
        for connection in crowd:
            connection.close()
    await wait_for(service, 'mimi_dropped_connections_total{code="connections"}', 1)


@pytest.mark.parametrize("said", [b"", HALF_A_HANDSHAKE, HANDSHAKE], ids=["silent", "half a handshake", "a stream"])
async def test_an_address_has_its_share_of_connections(start_service, crowd, said):
    """ANCHORS G5, G9: handshakes that never come to an end are counted with those that do."""
    service = start_service("--max-address-connections", "3", "--retry-after-ms", "1500")
    connections = crowd(service, 3, said)
    for round_number in range(3):
        with raw_socket(service) as fourth:
            head, _, body = (await asyncio.to_thread(everything, fourth)).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 429 "), round_number
        assert b"x-mimi-error: address_connections" in head
        error = json.loads(body)["error"]
        assert (error["subject"], error["found"]) == ("connections from 127.0.0.1", "3 of 3 connections")
        assert error["retry_after_ms"] == 1500
        # Each that goes makes room for one.
        connections.pop(0).close()
        connections.append(await let_in(service, crowd))
    for connection in connections:
        connection.close()
    assert await dropped(service) >= 3
    assert "Traceback" not in service.log


async def test_a_trusted_proxy_is_not_counted(start_service, crowd):
    service = start_service("--max-address-connections", "2", "--trusted-proxies", "127.0.0.0/8")
    crowd(service, 20)
    await wait_for(service, "mimi_connections", 21)


async def test_a_crowd_beyond_its_share_hurts_no_live_stream(start_service, crowd, stream, speech, tiny_model):
    """ANCHORS D5, G5, G9: connections that are refused, and handshakes left half, beside a stream whose codes are all right."""
    service = start_service("--max-address-connections", str(SHARE))
    samples = speech[: 20 * 1920]
    async with stream(service, "levels=8") as client:
        await client.until("ready")
        gathering = asyncio.create_task(asyncio.to_thread(crowd, service, CROWD, HALF_A_HANDSHAKE))
        for frame in samples.reshape(-1, 1920):
            await client.connection.send(frame.tobytes())
            await client.receive()
            await asyncio.sleep(0.04)
        connections = await gathering
        await asyncio.to_thread(_wait_for_answers, connections, CROWD - (SHARE - 1))
        await client.send("flush")
        await client.until("flushed")
        for connection in connections:
            connection.close()
        assert await dropped(service) >= CROWD - (SHARE - 1)
    assert np.array_equal(client.codes(), encode_clip(tiny_model, samples, 8))
    assert "Traceback" not in service.log


def _wait_for_answers(connections: list[socket.socket], count: int) -> None:
    """Wait until so many of the connections have got an answer; it is their refusal."""
    deadline_s, answers = time.monotonic() + 20, 0
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection, selectors.EVENT_READ)
        while answers < count and time.monotonic() < deadline_s:
            for key, _ in selector.select(1):
                selector.unregister(key.fileobj)
                answers += 1
    assert answers == count
