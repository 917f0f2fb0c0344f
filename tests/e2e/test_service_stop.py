"""The way down is bounded: whatever a peer, a store or a thread does, the process ends within its time."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
import time

import pytest

from server.process import longest_stop_s
from server.settings import Settings
from tests.e2e.test_service_bounds import HANDSHAKE, everything, raw_socket
from tests.e2e.test_service_limits import masked_message, raw_stream, wait_for_streams

FRAME = bytes(3840)
UPLOAD = (
    b"POST /v1/encode HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\nContent-Length: 1000000\r\n\r\n" + FRAME
)
PROBE = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
STOP = ("--drain-timeout-ms", "100", "--stop-timeout-ms")
SOON, LATER = (*STOP, "900"), (*STOP, "9000")
MACHINE_S = 20
"""What a machine that does other work may take to end a process that has nothing left to do."""


async def ended(service) -> int:
    """Send SIGTERM; return the exit status, which must come within the time for it and the machine's."""
    service.process.send_signal(signal.SIGTERM)
    limit_s = longest_stop_s(Settings(drain_timeout_ms=100, stop_timeout_ms=9000)) + MACHINE_S
    return await asyncio.to_thread(service.process.wait, limit_s)


async def test_no_peer_holds_up_the_end(start_service, stream):
    """ANCHORS G1, G8: one that reads nothing, an upload that stands still, requests and handshakes left half."""
    service = start_service(*LATER)
    deaf = raw_stream(service, "mode=decode&levels=1&format=f32le&sample_rate=96000")
    deaf.sendall(masked_message(bytes(20_000)))
    others = [raw_socket(service) for _ in range(4)]
    for connection, said in zip(others, (b"", HANDSHAKE[:60], UPLOAD, PROBE), strict=True):
        connection.sendall(said)
    async with stream(service) as silent, stream(service, "levels=1") as client:
        await client.until("ready")
        await wait_for_streams(service, 2)
        assert await ended(service) == 0
        assert await silent.closing() == (1012, "draining")
        assert await client.closing() == (1012, "draining")
    answers = [everything(connection) for connection in others]
    for connection in (deaf, *others):
        connection.close()
    assert answers[:2] == [b"", b""]
    assert answers[2].startswith(b"HTTP/1.1 503 ")
    assert b'"draining"' in answers[2]
    assert answers[3].startswith(b"HTTP/1.1 200 ")
    assert "Traceback" not in service.log
    assert "most recent call first" not in service.log


async def test_a_store_that_never_answers_does_not_hold_up_the_end(replica, resuming, tmp_path):
    """The process ends itself, and says where each of its threads was."""
    client = resuming("levels=1", FRAME * 50)
    service = replica(*SOON)
    connection = await client.open(service)
    await client.send(connection, 1920 * 5)
    await client.until(connection, "checkpoint")
    lock = os.open(tmp_path / "store" / "lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        await client.send(connection, 1920 * 20)
        assert await ended(service) == 1
    finally:
        os.close(lock)
    assert "most recent call first" in service.log
    assert "snapshot_store_directory.py" in service.log
    await client.lose(connection)
    # The last checkpoint is there, and is what the client goes on from.
    await client.finish(replica())


@pytest.mark.parametrize("after_s", [0.1, 0.7, 1.1])
def test_a_signal_while_the_service_starts_is_obeyed(tiny_model_path, after_s):
    command = [sys.executable, "-P", "-m", "server", "--port", "0", "--model", str(tiny_model_path), *SOON]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        time.sleep(after_s)
        process.terminate()
        _, log = process.communicate(timeout=MACHINE_S)
    # Before there is a service, the signal is what ends it.
    assert process.returncode in (0, -signal.SIGTERM)
    assert b"Traceback" not in log
