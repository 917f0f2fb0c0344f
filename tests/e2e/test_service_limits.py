"""Caps, time-outs, slow peers and the way down."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import socket
import time
from pathlib import Path

import httpx
import numpy as np
import pytest
import websockets

from codec_core.clip import encode_clip
from tests.e2e.service_load import load_of


def raw_stream(service, query: str, receive_buffer_bytes: int = 4096) -> socket.socket:
    """Shake hands by hand, for a peer that then does nothing that a library would do."""
    host, port = service.url.removeprefix("http://").split(":")
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
    connection.connect((host, int(port)))
    key = base64.b64encode(bytes(16)).decode()
    request = (
        f"GET /v1/stream?{query} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    connection.sendall(request.encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += connection.recv(1)
    assert answer.startswith(b"HTTP/1.1 101")
    return connection


def masked_message(data: bytes) -> bytes:
    assert 126 <= len(data) < 1 << 16
    return bytes([0x82, 0x80 | 126]) + len(data).to_bytes(2, "big") + bytes(4) + data


async def wait_for_streams(service, count: int, timeout_s: float = 5) -> None:
    deadline_s = time.monotonic() + timeout_s
    while (await load_of(service))["streams"] != count:
        assert time.monotonic() < deadline_s, "the number of streams did not come about"
        await asyncio.sleep(0.02)


async def test_one_too_many_is_told_so_and_when_to_come_back(start_service, stream):
    service = start_service("--max-sessions", "2", "--retry-after-ms", "1234")
    async with stream(service, "levels=1") as first, stream(service) as second:
        await first.until("ready")
        await second.send("hello", levels=1)
        await second.until("ready")
        async with stream(service, "levels=1") as third:
            assert await third.closing() == (1013, "capacity")
        assert third.texts[-1]["retry_after_ms"] == 1234
        await first.send("close")
        await first.closing()
        await wait_for_streams(service, 1)
        async with stream(service, "levels=1") as fourth:
            await fourth.until("ready")


@pytest.mark.parametrize(
    ("option", "query", "code"),
    [("--hello-timeout-ms", "", "hello_timeout"), ("--idle-timeout-ms", "levels=1", "idle_timeout")],
)
async def test_silence_ends(start_service, stream, option, query, code):
    """ANCHORS G5: the silent do not fill the service."""
    service = start_service(option, "200")
    async with stream(service, query) as client:
        assert await client.closing() == (1008, code)
    await wait_for_streams(service, 0)


async def test_a_stream_has_a_longest_time(start_service, stream):
    service = start_service("--session-timeout-ms", "300")
    async with stream(service, "levels=1") as client:
        await client.until("ready")
        for _ in range(3):
            await asyncio.sleep(0.05)
            await client.connection.send(bytes(3840))
        assert await client.closing() == (1008, "session_timeout")
    assert len(client.frames) == 3


async def test_a_reader_that_does_not_read_is_closed_and_hurts_nobody(start_service, stream, tiny_model, speech):
    """ANCHORS D5, G10: a queue with an end, and a reason to close."""
    service = start_service("--send-timeout-ms", "400")
    slow = raw_stream(service, "mode=decode&levels=1&format=f32le&sample_rate=96000")
    try:
        # Each two bytes ask for 30 KB of audio, none of which is ever read.
        slow.sendall(masked_message(bytes(20_000)))
        await wait_for_streams(service, 1)
        started_s = time.monotonic()
        async with stream(service, "levels=8") as client:
            await client.connection.send(speech[:28_800].tobytes())
            await client.send("flush")
            await client.until("flushed")
        assert np.array_equal(client.codes(), encode_clip(tiny_model, speech[:28_800], 8))
        await wait_for_streams(service, 0)
        assert time.monotonic() - started_s < 5
        for _ in range(100):
            if "too_slow" in service.log:
                break
            await asyncio.sleep(0.02)
        assert "too_slow" in service.log
        await _wait_for_connections(service, 0)
    finally:
        slow.close()


async def _wait_for_connections(service, count: int) -> None:
    """Wait until the process holds this many established connections; the probe's own is not left open."""
    deadline_s = time.monotonic() + 10
    while _connections(service) > count:
        assert time.monotonic() < deadline_s, "a connection stayed open"
        await asyncio.sleep(0.05)


def _connections(service) -> int:
    sockets = {str(link.readlink()) for link in Path(f"/proc/{service.process.pid}/fd").iterdir() if link.is_symlink()}
    inodes = {name[8:-1] for name in sockets if name.startswith("socket:[")}
    table = Path(f"/proc/{service.process.pid}/net/tcp").read_text().splitlines()[1:]
    return sum(1 for line in table if line.split()[9] in inodes and line.split()[3] == "01")


async def test_a_peer_that_answers_no_ping_is_given_up(start_service):
    service = start_service("--ping-interval-ms", "1000", "--ping-timeout-ms", "1000")
    dead = raw_stream(service, "levels=1")
    try:
        await wait_for_streams(service, 1)
        await wait_for_streams(service, 0)
    finally:
        dead.close()


async def test_a_busy_peer_whose_pongs_are_queued_behind_its_audio_is_not(start_service):
    service = start_service("--ping-interval-ms", "100", "--ping-timeout-ms", "400")
    # Made before, because making it may take longer than the talker may be silent.
    async with httpx.AsyncClient(base_url=service.url) as http:
        await http.get("/v1/info")
        talker = raw_stream(service, "levels=1", 1 << 20)
        try:
            for _ in range(30):
                talker.sendall(masked_message(bytes(3840)))
                await asyncio.sleep(0.05)
            assert (await http.get("/v1/info")).json()["load"]["streams"] == 1
        finally:
            talker.close()


async def test_a_peer_that_pings_and_never_reads_is_cut(start_service):
    service = start_service()
    pinger = raw_stream(service, "levels=1")
    pings = (bytes([0x89, 0x80 | 125]) + bytes(4 + 125)) * 400_000
    try:
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            await asyncio.to_thread(pinger.sendall, pings)
        await wait_for_streams(service, 0)
    finally:
        pinger.close()


async def test_an_open_stream_at_rest_costs_no_processor_time(start_service, stream):
    """ANCHORS C1: no busy loop."""
    service = start_service()
    async with stream(service, "levels=1") as client:
        await client.until("ready")
        before = os.times().elapsed, _cpu_s(service)
        await asyncio.sleep(1.5)
        elapsed_s, busy_s = os.times().elapsed - before[0], _cpu_s(service) - before[1]
    assert busy_s < 0.05 * elapsed_s


def _cpu_s(service) -> float:
    fields = Path(f"/proc/{service.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def denied(service) -> str:
    """Be refused before the handshake; return the error's code."""
    with pytest.raises(websockets.InvalidStatus) as refusal:
        await websockets.connect(service.stream_url("levels=1"))
    response = refusal.value.response
    assert response.status_code == 503
    assert int(response.headers["retry-after"]) > 0
    return json.loads(response.body)["error"]["code"]


async def test_behind_a_proxy_a_stream_without_a_place_is_refused_by_status(start_service, stream):
    service = start_service("--deny-handshakes", "--max-sessions", "1", "--drain-timeout-ms", "8000")
    async with stream(service, "levels=1") as client:
        await client.until("ready")
        assert await denied(service) == "capacity"
        service.process.send_signal(signal.SIGTERM)
        await client.until("goaway")
        assert await denied(service) == "draining"
        await client.send("close")
        assert await client.closing() == (1000, "done")
    assert service.process.wait(timeout=10) == 0


async def test_sigterm_lets_streams_finish_and_exits_with_zero(start_service, stream, tiny_model, speech):
    service = start_service("--drain-timeout-ms", "8000")
    async with stream(service, "levels=4") as client, httpx.AsyncClient(base_url=service.url) as http:
        await client.until("ready")
        await client.connection.send(speech[:10_000].tobytes())
        assert (await http.get("/readyz")).status_code == 200
        service.process.send_signal(signal.SIGTERM)
        goaway = await client.until("goaway")
        assert (goaway["code"], goaway["time_left_ms"]) == ("draining", 8000)
        assert goaway["resume_token"] == client.texts[0]["resume_token"]
        assert (await http.get("/readyz")).status_code == 503
        async with stream(service, "levels=1") as late:
            assert await late.closing() == (1012, "draining")
        assert late.texts[-1]["retry_after_ms"] > 0
        refused = await http.post("/v1/encode", content=bytes(3840), headers={"content-type": "application/octet-stream"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "draining")
        await client.connection.send(speech[10_000:20_000].tobytes())
        await client.send("flush")
        await client.until("flushed")
        await client.send("close")
        assert await client.closing() == (1000, "done")
    assert np.array_equal(client.codes(), encode_clip(tiny_model, speech[:20_000], 4))
    assert service.process.wait(timeout=4) == 0
    assert "Traceback" not in service.log


async def test_sigterm_closes_those_that_stay(start_service, stream):
    """ANCHORS G1: 1012 with its reason, not 1006."""
    service = start_service("--drain-timeout-ms", "300")
    async with stream(service, "levels=1") as client, stream(service) as without_hello:
        await client.until("ready")
        service.process.send_signal(signal.SIGTERM)
        assert await client.closing() == (1012, "draining")
        assert await without_hello.closing() == (1012, "draining")
    assert client.texts[-1]["code"] == "draining"
    assert service.process.wait(timeout=8) == 0
    with pytest.raises(OSError, match="Connect"):
        await websockets.connect(service.stream_url())


async def test_a_second_interrupt_hurries(start_service, stream):
    service = start_service("--drain-timeout-ms", "60000")
    async with stream(service, "levels=1") as client:
        await client.until("ready")
        service.process.send_signal(signal.SIGINT)
        await client.until("goaway")
        service.process.send_signal(signal.SIGINT)
        await client.closing()
    assert service.process.wait(timeout=8) == 0
