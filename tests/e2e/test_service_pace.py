"""How fast a stream is read, how late it may be, what it is told of that, and the ends that are nobody's fault."""

from __future__ import annotations

import asyncio
import sys
import time

import numpy as np
import pytest

from codec_core.clip import encode_clip
from server.pace_allowance import BURST_S

FRAME_SAMPLES = 1920
LEVELS = 8
BROKEN = """
import runpy
from server.stream_session import StreamSession
class Broken(StreamSession):
    async def _send_codes(self, codes):
        raise RuntimeError("the secret of the machine")
StreamSession._send_codes = Broken._send_codes
runpy.run_module("server", run_name="__main__")
"""


def tone(seconds: float) -> np.ndarray:
    at_s = np.arange(int(seconds * 24_000)) / 24_000
    return (8000 * np.sin(2 * np.pi * (200 + 20 * at_s) * at_s)).astype("<i2")


async def send_all(client, samples: np.ndarray) -> None:
    for start in range(0, len(samples), 24_000):
        await client.connection.send(samples[start : start + 24_000].tobytes())
    await client.send("flush")


async def test_what_comes_faster_than_it_may_waits_and_is_not_lost(start_service, stream, tiny_model):
    """ANCHORS D4, C3: input waits in TCP, not in memory."""
    service = start_service("--max-pace", "4")
    samples = tone(BURST_S + 3)
    async with stream(service, f"levels={LEVELS}") as client:
        await client.until("ready")
        started_s = time.monotonic()
        sending = asyncio.create_task(send_all(client, samples))
        await client.until("flushed")
        elapsed_s = time.monotonic() - started_s
        await sending
    assert np.array_equal(client.codes(), encode_clip(tiny_model, samples, LEVELS))
    # The last message is read as soon as those before it are within the allowance.
    assert elapsed_s > (3 - 1) / 4


async def test_a_free_pace_is_for_the_operator_to_allow(start_service, stream, tiny_model):
    service = start_service("--allow-free-pace", "--max-pace", "1")
    samples = tone(20)
    async with stream(service, f"levels={LEVELS}&pace=free") as client:
        assert (await client.until("ready"))["settings"]["pace"] == "free"
        started_s = time.monotonic()
        sending = asyncio.create_task(send_all(client, samples))
        await client.until("flushed")
        # At the other pace it would take fifteen.
        assert time.monotonic() - started_s < 14
        await sending
    assert np.array_equal(client.codes(), encode_clip(tiny_model, samples, LEVELS))


async def test_stats_come_each_second_where_they_are_asked_for(service, stream):
    async with stream(service, "levels=1&stats=on") as client:
        await client.connection.send(tone(1).tobytes())
        busy = await client.until("stats")
        idle = await client.until("stats")
    assert set(busy) == {"type", "lag_ms", "queued_frames", "real_time_factor"}
    assert busy["real_time_factor"] > 0
    assert busy["lag_ms"] > 0
    assert idle["real_time_factor"] == 0
    assert idle["queued_frames"] == 0


async def test_answers_that_are_far_too_late_end_the_connection_and_not_the_stream(start_service, resuming, tiny_model):
    """Answers never arrive within a millisecond of the last byte of 25 frames."""
    service = start_service("--lag-limit-ms", "1")
    samples = tone(2)
    client = resuming(f"levels={LEVELS}", samples.tobytes())
    connection = await client.open(service)
    await connection.send(samples[: 25 * FRAME_SAMPLES].tobytes()[:65_000])
    error = await client.until(connection, "error")
    assert (error["code"], error["retry_after_ms"] > 0) == ("overloaded", True)
    await connection.wait_closed()
    assert connection.close_code == 1013
    again = await client.open(service)
    assert client.readies[-1]["position"] == 32_500
    await client.until_frame(again, 15)
    await client.lose(again)
    assert np.array_equal(client.codes(), encode_clip(tiny_model, samples, LEVELS)[:, :16])


async def test_the_longest_time_of_a_stream_is_that_of_all_its_connections(start_service, stream):
    service = start_service("--session-timeout-ms", "1500")
    async with stream(service, "levels=1") as client:
        token = (await client.until("ready"))["resume_token"]
        await asyncio.sleep(1)
        client.connection.transport.abort()
    started_s = time.monotonic()
    async with stream(service, f"resume_token={token}") as client:
        assert await client.closing() == (1008, "session_timeout")
    assert time.monotonic() - started_s < 1.4


async def test_a_fault_of_the_service_is_named_and_hides_its_text(start_service, stream):
    service = start_service(program=(sys.executable, "-P", "-c", BROKEN))
    async with stream(service, "levels=1") as client:
        await client.connection.send(bytes(2 * FRAME_SAMPLES))
        assert await client.closing() == (1011, "internal")
    assert client.texts[-1]["found"] == "RuntimeError"
    assert "secret" not in str(client.texts)
    assert "the secret of the machine" in service.log


@pytest.mark.parametrize("stereo", [False, True])
async def test_ready_says_where_a_new_stream_stands(service, stream, stereo):
    async with stream(service, f"channels={1 + stereo}") as client:
        ready = await client.until("ready")
    told = {name: ready[name] for name in ("resumed", "epoch", "position", "next_sequence", "flushes", "resume_grace_ms")}
    assert told == {"resumed": False, "epoch": 0, "position": 0, "next_sequence": 0, "flushes": 0, "resume_grace_ms": 60_000}
    assert "resampler" not in ready
    assert "checkpoint_interval_ms" not in ready
