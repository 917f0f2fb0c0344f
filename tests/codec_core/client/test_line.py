from __future__ import annotations

import json
import random
import socket
import time

import pytest

from codec_core.client import LineOptions, StreamSettings
from codec_core.client.line import LineLostError, abandon, open_line, open_within, stream_url
from codec_core.client.protocol import StreamProtocol
from codec_core.errors import CodecError, SettingError, UnavailableError

IMPATIENT = LineOptions(open_timeout_ms=300, first_delay_ms=10, longest_delay_ms=20)


def protocol() -> StreamProtocol:
    return StreamProtocol(StreamSettings(levels=2), resume=True, max_held_bytes=1 << 20)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("ws://h:1", "ws://h:1/v1/stream"),
        ("https://h/", "wss://h/v1/stream"),
        ("http://[::1]:8000", "ws://[::1]:8000/v1/stream"),
        ("wss://h/behind/a/proxy?x=1", "wss://h/behind/a/proxy?x=1"),
    ],
)
def test_addresses(given: str, found: str):
    assert stream_url(given) == found


def test_a_token_goes_into_the_query():
    assert stream_url("ws://h", "a b&c") == "ws://h/v1/stream?token=a+b%26c"
    assert stream_url("ws://h/s?x=1", "t") == "ws://h/s?x=1&token=t"


@pytest.mark.parametrize(
    "url", ["", "localhost:8000", "ftp://h", "ws://", "ws:///v1", "ws://h:99999", "ws://[::1", "ws://h/#f"]
)
def test_what_is_no_address_is_refused(url: str):
    with pytest.raises(SettingError, match="url"):
        stream_url(url)


async def test_nobody_there_is_worth_another_try():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(LineLostError, match="can be reached") as caught:
            await open_line(f"ws://127.0.0.1:{unused.getsockname()[1]}", protocol(), IMPATIENT)
    assert type(caught.value.error) is UnavailableError


async def test_a_service_that_says_nothing_is_given_up(peer):
    async with peer(lambda connection: connection.wait_closed()) as url:
        with pytest.raises(LineLostError, match="no answer within 300 ms"):
            await open_line(url, protocol(), IMPATIENT)


async def test_a_refusal_is_raised_as_what_it_is(peer):
    async def refuse(connection):
        await connection.recv()
        await connection.send(json.dumps({"type": "error", "code": "setting", "subject": "levels", "found": "9"}))
        await connection.close(1008, "setting")

    async with peer(refuse) as url:
        with pytest.raises(SettingError, match="levels: found 9"):
            await open_line(url, protocol(), IMPATIENT)


async def test_the_wait_that_a_full_service_asks_for_is_kept(peer, wire):
    async def full(connection):
        await connection.recv()
        await connection.send(json.dumps({"type": "error", "code": "capacity", "subject": "streams", "retry_after_ms": 250}))
        await connection.close(1013, "capacity")

    async def free(connection):
        assert json.loads(await connection.recv())["type"] == "hello"
        await connection.send(wire.ready())
        await connection.wait_closed()

    async with peer(full, full, free) as url:
        started_s = time.monotonic()
        rng = random.Random(1)
        connection = await open_within(5, url, protocol(), IMPATIENT, rng=rng, cause=None)
        assert time.monotonic() - started_s >= 0.5
        await abandon(connection)
    async with peer(full) as url:
        with pytest.raises(CodecError) as caught:
            await open_within(0.1, url, protocol(), IMPATIENT, rng=rng, cause=None)
    assert caught.value.code == "capacity"


async def test_keys_and_the_subprotocol_are_sent(peer, wire):
    seen = []

    async def note(connection):
        seen.append((connection.request.headers.get("authorization"), connection.subprotocol, connection.request.path))
        await connection.recv()
        await connection.send(wire.ready())
        await connection.wait_closed()

    async with peer(note) as url:
        options = LineOptions(key="hush", token="soon")
        await abandon(await open_line(url, protocol(), options))
    assert seen == [("Bearer hush", "mimi.v1", "/v1/stream?token=soon")]
