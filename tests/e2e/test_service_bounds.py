"""Who is let in, how fast they may come, and what that costs those who are there already."""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import socket
import time

import httpx
import numpy as np
import pytest
import websockets

from codec_core.clip import encode_clip

CROWD = 1_000
FRAME = bytes(3840)
SLOW = ("--model", "default", "--max-latency-ms", "1")
HANDSHAKE = (
    b"GET /v1/stream?levels=1 HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


def raw_socket(service) -> socket.socket:
    host, port = service.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=10)


def everything(connection: socket.socket) -> bytes:
    """Return what comes until the other end hangs up."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while data := connection.recv(65_536):
            received += data
    return received


async def metrics_of(service) -> dict[str, float]:
    async with httpx.AsyncClient(base_url=service.url) as http:
        text = (await http.get("/metrics")).text
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


async def wait_for(service, name: str, value: float) -> None:
    for _ in range(500):
        if (found := (await metrics_of(service)).get(name)) == value:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"{name} is {found}")


def through(*addresses: str) -> dict[str, dict[str, str]]:
    return {"additional_headers": {"X-Forwarded-For": ", ".join(addresses)}}


async def test_each_address_has_its_share_and_only_a_trusted_proxy_says_which(start_service, stream):
    """ANCHORS E3: a place that is refused because of the address says so."""
    service = start_service("--trusted-proxies", "127.0.0.0/8", "--max-address-sessions", "2", "--retry-after-ms", "1500")
    async with (
        stream(service, "levels=1", **through("192.0.2.1")) as first,
        stream(service, "levels=1", **through("192.0.2.1")) as second,
    ):
        await first.until("ready")
        await second.until("ready")
        # What the client itself puts in front of its address counts for nothing.
        for addresses in (("192.0.2.1",), ("198.51.100.7", "192.0.2.1")):
            async with stream(service, "levels=1", **through(*addresses)) as third:
                assert await third.closing() == (1013, "address_capacity")
            assert third.texts[-1]["retry_after_ms"] == 1500
            assert third.texts[-1]["subject"] == "streams from 192.0.2.1"
        async with stream(service, "levels=1", **through("192.0.2.2")) as other:
            await other.until("ready")


async def test_a_header_of_a_stranger_is_not_believed(start_service, stream):
    service = start_service("--max-address-sessions", "1")
    async with stream(service, "levels=1", **through("192.0.2.1")) as first:
        await first.until("ready")
        async with stream(service, "levels=1", **through("192.0.2.2")) as second:
            assert await second.closing() == (1013, "address_capacity")
        assert second.texts[-1]["subject"] == "streams from 127.0.0.1"


async def test_handshakes_come_no_faster_than_they_may(start_service, stream):
    service = start_service("--max-address-handshakes-per-s", "1")
    for _ in range(4):
        async with stream(service, "levels=1") as client:
            await client.until("ready")
    with pytest.raises(websockets.InvalidStatus) as refusal:
        await websockets.connect(service.stream_url("levels=1"))
    answer = refusal.value.response
    assert (answer.status_code, answer.headers["x-mimi-error"], answer.headers["retry-after"]) == (429, "handshake_rate", "1")
    assert json.loads(answer.body)["error"]["retry_after_ms"] <= 1001
    assert (await metrics_of(service))['mimi_refusals_total{code="handshake_rate",kind="handshake"}'] == 1


async def test_a_service_at_its_limit_refuses_by_name_and_says_that_it_is_not_ready(start_service, stream):
    """ANCHORS C3, E3, 6.4: refused by what was measured, with a reason and a time to come back."""
    service = start_service("--admission", "measured", *SLOW, "--retry-after-ms", "2345")
    async with httpx.AsyncClient(base_url=service.url) as http:
        assert (await http.get("/readyz")).status_code == 200
        async with stream(service, "levels=8") as first:
            await first.until("ready")
            async with stream(service, "mode=echo") as second:
                assert await second.closing() == (1013, "overloaded")
            assert second.texts[-1]["retry_after_ms"] == 2345
            assert "expected at most 1 ms" in second.texts[-1]["message"]
            refused = await http.post("/v1/encode", content=FRAME, headers={"content-type": "application/octet-stream"})
            assert (refused.status_code, refused.headers["x-mimi-error"]) == (503, "overloaded")
            assert refused.headers["retry-after"] == "3"
            ready = await http.get("/readyz")
            assert ready.status_code == 503
            assert "expected at most 1 ms" in ready.json()["checks"]["headroom"]
            await first.connection.send(FRAME)
            await first.receive()
            found = await metrics_of(service)
            assert found['mimi_refusals_total{code="overloaded",kind="stream"}'] == 1
            assert found['mimi_ready{check="headroom"}'] == 0
            assert found["mimi_realtime_headroom"] < 1
        await wait_for(service, 'mimi_sessions{kind="stream"}', 0)
        assert (await http.get("/readyz")).status_code == 200


async def test_admission_by_numbers_alone(start_service, stream):
    service = start_service(*SLOW, "--max-sessions", "3")
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(3):
            client = await stack.enter_async_context(stream(service, "levels=8"))
            await client.until("ready")
        async with stream(service, "levels=8") as fourth:
            assert await fourth.closing() == (1013, "capacity")


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (b"", b""),
        (b"", b"GET /v1/stream HTTP/1.1\r\nHost: x\r\n"),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /healthz HTTP/1.1\r\n"),
    ],
    ids=["silent", "half of it", "half of the next"],
)
async def test_who_says_nothing_or_only_half_of_it_is_hung_up_on(start_service, before, said):
    service = start_service("--request-timeout-ms", "200")
    with raw_socket(service) as connection:
        connection.sendall(before)
        answer = b""
        while before and b"alive" not in answer:
            answer += connection.recv(65_536)
        connection.sendall(said)
        answer = await asyncio.to_thread(everything, connection)
    if not said:
        assert answer == b""
    else:
        head, body = answer.split(b"\r\n\r\n")
        assert b"HTTP/1.1 408 Request Timeout" in head
        assert json.loads(body)["error"]["code"] == "request_timeout"
    await wait_for(service, 'mimi_dropped_connections_total{code="request_timeout"}', 1)
    assert "Traceback" not in service.log


async def test_a_whole_request_and_a_stream_outlive_the_time_for_requests(start_service, stream):
    service = start_service("--request-timeout-ms", "1000")
    async with stream(service, "levels=1") as client, httpx.AsyncClient(base_url=service.url) as http:
        await client.until("ready")
        assert (await http.get("/healthz")).status_code == 200
        await asyncio.sleep(1.5)
        await client.connection.send(FRAME)
        await client.receive()
        assert (await http.get("/healthz")).status_code == 200


async def test_messages_are_read_at_their_rate_and_none_is_lost(start_service, stream):
    service = start_service("--max-messages-per-s", "100")
    started_s = time.monotonic()
    async with stream(service, "mode=decode&levels=1") as client:
        for code in range(450):
            await client.connection.send(bytes([code % 32, 0]))
        await client.send("flush")
        await client.until("flushed")
    # 400 at once, the other 51 in half a second: no machine is too slow for this bound.
    assert time.monotonic() - started_s >= 0.45
    assert len(client.frames) == 450


async def test_a_thousand_idle_or_refused_hurt_no_live_stream(start_service, stream, speech, tiny_model):
    """ANCHORS D5, G5, G9: silence and refusals in numbers, with real sockets; the live stream's codes are all right."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    limits = {
        "max-sessions": 1,
        "max-address-handshakes-per-s": 10,
        "max-address-connections": 2 * CROWD,
        "idle-timeout-ms": 20_000,
    }
    service = start_service(*(part for name, value in limits.items() for part in (f"--{name}", str(value))))
    crowd: list[socket.socket] = []
    samples = speech[: 30 * 1920]
    async with stream(service, "levels=8", open_timeout=30) as client:
        await client.until("ready")

        async def live() -> None:
            for frame in samples.reshape(-1, 1920):
                await client.connection.send(frame.tobytes())
                await client.receive()
                await asyncio.sleep(0.04)

        async def gather_a_crowd() -> int:
            refused = 0
            for number in range(CROWD):
                crowd.append(await asyncio.to_thread(raw_socket, service))
                if number % 10 == 0:
                    refused += sum(await asyncio.gather(*(asyncio.to_thread(_refused, service) for _ in range(10))))
            return refused

        _, refused = await asyncio.gather(live(), gather_a_crowd())
        await client.send("flush")
        await client.until("flushed")
        found = await metrics_of(service)
        assert found["mimi_connections"] > CROWD
    for connection in crowd:
        connection.close()
    assert refused == CROWD
    assert np.array_equal(client.codes(), encode_clip(tiny_model, samples, 8))
    assert sum(value for name, value in found.items() if name.startswith("mimi_refusals_total")) == CROWD
    await wait_for(service, 'mimi_sessions{kind="stream"}', 0)
    assert "Traceback" not in service.log


def _refused(service) -> bool:
    with raw_socket(service) as connection:
        connection.sendall(HANDSHAKE)
        answer = connection.recv(65_536)
        if answer.startswith(b"HTTP/1.1 101"):
            # Let in by the gate, and refused by name for want of a place.
            while b"capacity" not in answer:
                answer += connection.recv(65_536)
    return b"handshake_rate" in answer or b"capacity" in answer


async def pour(client) -> None:
    """Send without a pause, so that the service stops reading and the pongs lie behind the audio."""
    while True:
        await client.connection.send(FRAME * 4)


async def drink(client) -> None:
    while True:
        await client.receive()


async def test_under_full_load_the_dead_are_found_and_the_living_are_spared(start_service, stream):
    """ANCHORS G2, G3, G4: pings keep their meaning while the engine is busy without a pause."""
    service = start_service(
        "--model", "default", "--ping-interval-ms", "150", "--ping-timeout-ms", "400", "--admission", "count"
    )
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(raw_socket(service)).sendall(HANDSHAKE)
        clients = [await stack.enter_async_context(stream(service, "levels=8")) for _ in range(8)]
        for client in clients:
            await client.until("ready")
            # At the end nobody waits for what is still in line.
            stack.callback(client.connection.transport.abort)
        work = [asyncio.create_task(one(client)) for client in clients for one in (pour, drink)]
        # The dead one says nothing and hears nothing: it is cut, while those who stand in line behind their own audio are not.
        await asyncio.sleep(2.5)
        found = await metrics_of(service)
        assert found['mimi_sessions{kind="stream"}'] == len(clients)
        assert not [task for task in work if task.done()]
        assert found["mimi_busy_seconds_total"] > 0.2
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
    assert all(len(client.frames) > 10 for client in clients)


async def test_nobody_counts_as_dead_while_the_service_itself_does_not_read(start_service, stream):
    """ANCHORS G3: the pong is there, behind messages that are not read yet."""
    service = start_service("--max-messages-per-s", "1", "--ping-interval-ms", "100", "--ping-timeout-ms", "300")
    async with stream(service, "levels=1") as client:
        await client.until("ready")
        for _ in range(6):
            await client.connection.send(FRAME)
        for _ in range(6):
            await client.receive()
    assert len(client.frames) == 6
