"""What goes over the line and when, seen by the peer."""

from __future__ import annotations

import asyncio
import json

import numpy as np

from codec_core.client import LineOptions, Stream, StreamSettings

SETTINGS = StreamSettings(levels=2)
QUICK = LineOptions(first_delay_ms=10, longest_delay_ms=50, close_timeout_ms=300)


async def collect(connection, wire, audio_bytes: int, **ready) -> list[int]:
    """Play a service that only counts; return the sizes of the messages of audio."""
    await connection.recv()
    await connection.send(wire.ready(**ready))
    sizes: list[int] = []
    while sum(sizes) < audio_bytes:
        message = await connection.recv()
        if isinstance(message, bytes):
            sizes.append(len(message))
    return sizes


async def test_messages_are_whole_frames_and_within_the_limit(peer, wire):
    sizes: list[list[int]] = []

    def counting(**ready):
        async def script(connection):
            sizes.append(await collect(connection, wire, 40_000 * 2, **ready))

        return script

    small = {"limits": {"max_message_bytes": 1001}}
    async with peer(counting(), counting(), counting(**small)) as url:
        for paced in (False, True, False):
            async with Stream(url, SETTINGS, LineOptions(resume=False, close_timeout_ms=300), paced=paced) as stream:
                await stream.send(np.zeros(40_000, np.int16))
                await asyncio.sleep(0 if not paced else 1.8)
    unpaced, paced_sizes, limited = sizes
    assert max(unpaced) == 8 * 3840
    assert set(paced_sizes[:-1]) == {3840}
    assert max(limited) == 1000


async def test_acknowledgements_do_not_wait_for_input(peer, wire):
    enough = asyncio.Event()

    async def script(connection):
        await connection.recv()
        await connection.send(wire.ready())
        for sequence in range(20):
            await connection.send(wire.codes(sequence, 1, 2))
        acknowledged = -1
        while acknowledged < 15:
            fields = json.loads(await connection.recv())
            assert (fields["type"], fields["epoch"]) == ("ack", 0)
            acknowledged = fields["sequence"]
        enough.set()

    async with peer(script) as url, Stream(url, SETTINGS, QUICK) as stream:
        assert [(await stream.receive()).sequence for _ in range(20)] == list(range(20))
        await asyncio.wait_for(enough.wait(), 10)


async def test_input_given_while_the_line_is_lost_goes_out_on_the_next(peer, wire):
    async def first(connection):
        await connection.recv()
        await connection.send(wire.ready())
        connection.transport.abort()

    got: list[int] = []
    enough = asyncio.Event()

    async def second(connection):
        assert json.loads(await connection.recv())["type"] == "resume"
        await connection.send(wire.ready(resumed=True))
        while sum(got) < 6 * 3840:
            message = await connection.recv()
            got.append(len(message) if isinstance(message, bytes) else 0)
        enough.set()

    slow = LineOptions(first_delay_ms=300, longest_delay_ms=300, close_timeout_ms=300)
    async with peer(first, second) as url, Stream(url, SETTINGS, slow) as stream:
        for _ in range(6):
            await stream.send(np.zeros(1920, np.int16))
            await asyncio.sleep(0.02)
        await asyncio.wait_for(enough.wait(), 10)
    assert sum(got) == 6 * 3840
