"""Who may not come back, or no longer, and what each is told."""

from __future__ import annotations

import numpy as np
import pytest

from codec_core.clip import encode_clip
from tests.e2e.service_load import load_of, wait_for

FRAME_SAMPLES = 1920
LEVELS = 8


@pytest.mark.parametrize("acknowledged", [True, False])
async def test_what_is_no_longer_held_is_refused_by_name(start_service, stream, speech, acknowledged):
    service = start_service("--replay-window-frames", "5")
    async with stream(service, "levels=1") as client:
        token = (await client.until("ready"))["resume_token"]
        await client.connection.send(speech[: 9 * FRAME_SAMPLES].tobytes())
        await client.send("ping")
        if acknowledged:
            await client.until("pong")
            await client.send("ack", sequence=6)
            await client.send("ping")
        await client.until("pong")
        client.connection.transport.abort()
    first_held = 7 if acknowledged else 4
    async with stream(service, f"resume_token={token}&last_sequence={first_held - 2}") as client:
        assert await client.closing() == (1008, "resume_lost")
        assert str(first_held - 1) in client.texts[-1]["expected"]
    async with stream(service, f"resume_token={token}&last_sequence={first_held - 1}") as client:
        await client.until("ready")
        await client.send("ping")
        await client.until("pong")
        assert [header.sequence for header, _ in client.frames] == list(range(first_held, 9))


async def test_a_token_is_good_until_the_next_one_has_arrived(service, stream):
    async with stream(service, "levels=1") as client:
        first = (await client.until("ready"))["resume_token"]
        client.connection.transport.abort()
    async with stream(service, f"resume_token={first}") as client:
        await client.until("ready")
        client.connection.transport.abort()
    # That ready might have been lost: the first token still opens. Then the client speaks, and it no longer does.
    async with stream(service, f"resume_token={first}") as client:
        last = (await client.until("ready"))["resume_token"]
        await client.send("ping")
        await client.until("pong")
        client.connection.transport.abort()
    async with stream(service, f"resume_token={first}") as client:
        assert await client.closing() == (1008, "resume_refused")
        assert "later connection" in client.texts[-1]["found"]
    async with stream(service, f"resume_token={last}") as client:
        await client.until("ready")


async def test_forged_tokens_are_refused(service, stream, rng):
    async with stream(service, "levels=1") as client:
        token = (await client.until("ready"))["resume_token"]
        await client.send("ping")
        await client.until("pong")
        for _ in range(12):
            place = int(rng.integers(len(token) - 1))
            forged = token[:place] + chr(ord(token[place]) ^ 1) + token[place + 1 :]
            async with stream(service) as other:
                await other.send("resume", token=forged, last_sequence=-1)
                assert await other.closing() == (1008, "resume_refused")
        for nonsense in ("A", "=" * 40, "é" * 20, token + token, token[:-4], "A" * 128):
            async with stream(service) as other:
                await other.send("resume", token=nonsense, last_sequence=-1)
                assert await other.closing() == (1008, "resume_refused")
        await client.send("ping")
        await client.until("pong")


async def test_a_closed_stream_does_not_come_back(service, stream):
    async with stream(service, "levels=1") as client:
        token = (await client.until("ready"))["resume_token"]
        await client.send("close")
        await client.closing()
    async with stream(service, f"resume_token={token}") as client:
        assert await client.closing() == (1008, "resume_refused")


async def test_a_close_that_nobody_waits_for_frees_the_parked_place(service, stream):
    async with stream(service, "levels=1") as client:
        await client.until("ready")
        await client.connection.send(bytes(60_000))
        await client.send("close")
        await client.receive()
        client.connection.transport.abort()
    await wait_for(service, "streams", 0)
    await wait_for(service, "parked", 0)


@pytest.mark.parametrize(("code", "final"), [(1000, True), (1001, False), (4000, False)])
async def test_a_close_frame_ends_the_stream_if_it_says_that_all_is_done(service, stream, code, final):
    async with stream(service, "levels=1") as client:
        token = (await client.until("ready"))["resume_token"]
        await client.connection.close(code)
    async with stream(service, f"resume_token={token}") as client:
        if final:
            assert await client.closing() == (1008, "resume_refused")
        else:
            assert (await client.until("ready"))["resumed"]


async def test_a_refused_stream_does_not_come_back(service, stream):
    async with stream(service, "levels=1") as client:
        token = (await client.until("ready"))["resume_token"]
        await client.send("flush", colour="red")
        await client.closing()
    async with stream(service, f"resume_token={token}") as client:
        assert await client.closing() == (1008, "resume_refused")


async def test_the_future_cannot_be_resumed_from(service, stream):
    async with stream(service, "levels=1") as client:
        token = (await client.until("ready"))["resume_token"]
        client.connection.transport.abort()
    for place in ("last_sequence=0", "last_sequence=-1&epoch=1"):
        async with stream(service, f"resume_token={token}&{place}") as client:
            assert await client.closing() == (1008, "protocol")


async def test_a_parked_stream_expires_and_its_place_is_free(start_service, stream):
    service = start_service("--resume-grace-ms", "300", "--max-parked-sessions", "1")
    tokens = []
    for _ in range(2):
        async with stream(service, "levels=1") as client:
            tokens.append((await client.until("ready"))["resume_token"])
            client.connection.transport.abort()
        await wait_for(service, "streams", 0)
    # The second found no parked place free, and with no store to go to it was ended.
    assert (await load_of(service))["parked"] <= 1
    async with stream(service, f"resume_token={tokens[1]}") as client:
        assert await client.closing() == (1008, "resume_refused")
    await wait_for(service, "parked", 0)
    async with stream(service, f"resume_token={tokens[0]}") as client:
        assert await client.closing() == (1008, "resume_refused")


async def test_without_grace_time_nothing_is_promised(start_service, stream):
    service = start_service("--resume-grace-ms", "0")
    async with stream(service, "levels=1") as client:
        assert "resume_token" not in await client.until("ready")
        client.connection.transport.abort()
    async with stream(service, "resume_token=x") as client:
        assert await client.closing() == (1008, "not_offered")
    assert (await load_of(service))["parked"] == 0


async def test_silence_parks_a_stream_too(start_service, resuming, tiny_model, speech):
    service = start_service("--idle-timeout-ms", "2000")
    client = resuming(f"levels={LEVELS}", speech.tobytes())
    connection = await client.open(service)
    await client.send(connection, 5000)
    await client.until(connection, "error")
    assert client.texts[-1]["code"] == "idle_timeout"
    await client.finish(service)
    assert np.array_equal(client.codes(), encode_clip(tiny_model, speech, LEVELS))
