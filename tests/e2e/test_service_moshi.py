"""The Mimi module of moshi-server: a client written from its wire, pointed at a service of ours."""

from __future__ import annotations

import asyncio
import contextlib
import struct

import numpy as np
import pytest
import websockets
from websockets.asyncio.client import connect

from codec_core.clip import decode_clip, encode_clip
from codec_core.ogg import OggOpusReader, OggOpusWriter
from codec_core.opus import OpusDecoder, OpusEncoder

LEVELS = 8
ROOMS = ("--moshi-rooms", "hall,attic", "--allow-free-pace")


@pytest.fixture(scope="module")
def rooms(run_service, tiny_model_path, tmp_path_factory):
    with run_service(tmp_path_factory.mktemp("rooms"), tiny_model_path, *ROOMS) as running:
        yield running


def address(service, side: str, query: str = "") -> str:
    return f"ws{service.url[4:]}/api/mimi/{side}{query}"


def codes_message(codes: np.ndarray) -> bytes:
    return bytes([9]) + struct.pack(f"<{len(codes)}I", *codes.tolist())


async def next_message(connection) -> bytes:
    message = await asyncio.wait_for(connection.recv(), 20)
    assert isinstance(message, bytes)
    return message


@contextlib.asynccontextmanager
async def listening(service, query: str = "", **options):
    """A listener that has been greeted, and the reader of its sound."""
    async with connect(address(service, "recv", query), **options) as connection:
        assert await next_message(connection) == bytes(9)
        header = await next_message(connection)
        assert header[0] == 1
        reader = OggOpusReader()
        assert reader.push(header[1:]) == []
        yield connection, reader


async def sound_of(connection, reader, frames: int) -> np.ndarray:
    decoder, pieces = OpusDecoder(), []
    while len(pieces) < frames:
        message = await next_message(connection)
        if message[0] == 1:
            pieces += [decoder.decode(packet) for packet in reader.push(message[1:])]
    return np.concatenate(pieces)


async def closed(connection) -> tuple[int, str, bytes]:
    last = b""
    with contextlib.suppress(websockets.ConnectionClosed):
        while True:
            last = await next_message(connection)
    return connection.close_code, connection.close_reason, last


async def test_codes_sent_to_a_room_are_heard_by_all_in_it(rooms, tiny_model, speech):
    codes = encode_clip(tiny_model, speech[: 10 * 1920], LEVELS)
    async with (
        listening(rooms) as (first, first_reader),
        listening(rooms, "?room_id=hall") as (second, second_reader),
        listening(rooms, "?room_id=attic") as (elsewhere, _),
        connect(address(rooms, "send"), additional_headers={"room_id": "hall"}) as sender,
    ):
        await sender.send("text frames are none of its messages")
        for frame in codes.T:
            await sender.send(codes_message(frame))
        await sender.send(b"\x02a word")
        heard = [await sound_of(first, first_reader, 10), await sound_of(second, second_reader, 10)]
        assert await next_message(first) == b"\x02a word"
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(elsewhere.recv(), 0.1)
    assert np.array_equal(*heard)
    encoder, decoder = OpusEncoder(), OpusDecoder()
    writer, reader = OggOpusWriter(encoder.head, 24_000, 1), OggOpusReader()
    pages = [writer.page(encoder.encode(frame)) for frame in decode_clip(tiny_model, codes).reshape(-1, 1920)]
    expected = np.concatenate([decoder.decode(packet) for page in pages for packet in reader.push(page)])
    assert len(expected) == 10 * 3840 - 312
    assert np.array_equal(heard[0], expected)


async def test_one_sender_a_room_and_known_rooms_only(rooms):
    async with connect(address(rooms, "send", "?room_id=attic")) as sender:
        await sender.send(b"\x02here")
        await asyncio.sleep(0.1)
        async with connect(address(rooms, "send", "?room_id=attic")) as second:
            code, reason, last = await closed(second)
        assert (code, reason, last[:1]) == (1013, "capacity", b"\x05")
        assert b"one sender" in last
    with pytest.raises(websockets.InvalidStatus) as refused:
        await connect(address(rooms, "recv", "?room_id=cellar"))
    assert refused.value.response.status_code == 404


@pytest.mark.parametrize(
    ("message", "reason"),
    [(b"\x09", "payload"), (bytes([9, 1]), "payload"), (codes_message(np.full(LEVELS, 99_999)), "code_range")],
)
async def test_what_is_no_codes_is_told(rooms, message, reason):
    async with connect(address(rooms, "send")) as sender:
        await sender.send(message)
        code, told, last = await closed(sender)
    assert (code, told) == (1007, reason)
    assert last.startswith(b"\x05" + reason.encode())


async def test_a_listener_that_lags_is_told(rooms):
    """Texts come much faster than anybody who does not read them can be given them."""
    async with listening(rooms, max_queue=1) as (slow, _), connect(address(rooms, "send")) as sender:
        for _ in range(400):
            await sender.send(b"\x02" + bytes(60_000))
        await asyncio.sleep(0.2)
        code, reason, last = await closed(slow)
    assert (code, reason) == (1008, "too_slow")
    assert last.startswith(b"\x05too_slow")


async def test_keys_come_as_its_clients_send_them(start_service):
    service = start_service("--moshi-rooms", "hall", "--api-keys", "a key")
    async with connect(address(service, "recv", "?auth_id=a%20key")):
        pass
    async with connect(address(service, "send"), additional_headers={"kyutai-api-key": "a key"}):
        pass
    with pytest.raises(websockets.InvalidStatus) as refused:
        await connect(address(service, "send", "?auth_id=another"))
    assert refused.value.response.status_code == 401
    assert "a key" not in service.log
    assert "a%20key" not in service.log


async def test_without_rooms_there_are_no_such_addresses(service):
    with pytest.raises(websockets.InvalidStatus) as refused:
        await connect(address(service, "send"))
    assert refused.value.response.status_code == 404
