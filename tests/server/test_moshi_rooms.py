from __future__ import annotations

import asyncio
import struct
import sys

import numpy as np
import pytest

from codec_core.errors import CodeRangeError, UnavailableError
from codec_core.ogg import OggOpusReader
from server.errors import CapacityError, NotFoundError, PayloadError, TooSlowError
from server.moshi_rooms import Room, Rooms, parse_codes
from server.settings import Settings
from server.wire_settings import Offer

OFFER = Offer(default_levels=8, max_levels=8, codebook_entries=2048, frame_samples=1920, sample_rate_hz=24000, numerics="ggml")


def test_codes_are_four_bytes_each():
    assert parse_codes(b"\x09" + struct.pack("<3I", 1, 2, 2047), None, OFFER).tolist() == [1, 2, 2047]


@pytest.mark.parametrize("size_bytes", [0, 3, 5, 36])
def test_other_sizes_are_refused(size_bytes):
    with pytest.raises(PayloadError, match=f"{size_bytes} bytes"):
        parse_codes(bytes(1 + size_bytes), None, OFFER)


def test_levels_do_not_change_and_codes_stay_in_range():
    with pytest.raises(PayloadError, match="expected 2 codes"):
        parse_codes(bytes(5), 2, OFFER)
    with pytest.raises(CodeRangeError, match=r"level 1\]: found 4294967295"):
        parse_codes(b"\x09" + struct.pack("<2I", 0, 0xFFFFFFFF), None, OFFER)


def test_rooms_are_found_by_name_and_the_first_by_none():
    rooms = Rooms(Settings(moshi_rooms="a, b"))
    assert rooms.find("b") is rooms.find("b")
    assert rooms.find(None) is rooms.find("a")
    with pytest.raises(NotFoundError, match=r"room_id: found 'c', expected a \| b"):
        rooms.find("c")


def test_rooms_need_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(UnavailableError, match=r"mimi-server\[opus\]"):
        Rooms(Settings(moshi_rooms="a"))
    Rooms(Settings())


def test_one_sender_at_a_time():
    room = Room("a")
    room.enter(100)
    with pytest.raises(CapacityError, match="one sender"):
        room.enter(100)
    room.leave()
    room.enter(100)


async def test_a_sender_that_leaves_in_mid_frame_tears_nothing():
    """What it began is heard to its end, before the next sender's first frame: pages follow one another."""
    room = Room("a")
    reader, listener = OggOpusReader(), room.listen(100)
    reader.push(await room.header())
    pcm = np.sin(np.arange(1920) / 9).astype(np.float32)
    for _ in range(20):
        left = asyncio.create_task(room.play(pcm))
        await asyncio.sleep(0)
        left.cancel()
        await room.play(pcm)
    packets = [packet for _ in range(40) for packet in reader.push((await listener.next())[1:])]
    assert len(packets) == 40


async def test_a_listener_that_lags_is_told_and_misses_nothing_before():
    room = Room("a")
    slow, quick = room.listen(2), room.listen(5)
    for number in range(3):
        room.tell(bytes([number]))
    assert [await slow.next() for _ in range(2)] == [b"\0", b"\1"]
    with pytest.raises(TooSlowError, match="2 messages left unread"):
        await slow.next()
    assert [await quick.next() for _ in range(3)] == [b"\0", b"\1", b"\2"]


async def test_who_comes_later_gets_the_header_and_what_follows():
    room = Room("a")
    await room.play(np.zeros(1920, np.float32))
    listener, header = room.listen(5), await room.header()
    reader = OggOpusReader()
    assert reader.push(header) == []
    assert reader.place.tagged
    await room.play(np.zeros(1920, np.float32))
    message = await listener.next()
    assert message[:5] == b"\x01OggS"
