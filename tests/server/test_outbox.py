from __future__ import annotations

import asyncio

import pytest

from server.errors import TakenOverError
from server.outbox import MAX_BYTES, MAX_MESSAGES, Outbox


async def test_messages_come_in_order_and_then_the_end():
    outbox = Outbox()
    outbox.preload(["a", b"b"])
    await outbox.put("c")
    outbox.finish(None)
    assert [await outbox.get() for _ in range(4)] == ["a", b"b", "c", None]


async def test_the_end_may_be_a_failure():
    outbox = Outbox()
    outbox.preload(["a"])
    outbox.finish(TakenOverError("stream"))
    assert await outbox.get() == "a"
    with pytest.raises(TakenOverError):
        await outbox.get()


@pytest.mark.parametrize("filling", [[bytes(MAX_BYTES)], ["x"] * MAX_MESSAGES])
async def test_a_full_outbox_makes_writers_wait_until_somebody_reads(filling):
    outbox = Outbox()
    for message in filling:
        await outbox.put(message)
    writers = [asyncio.create_task(outbox.put("late")) for _ in range(3)]
    await asyncio.sleep(0.01)
    assert not any(writer.done() for writer in writers)
    for _ in range(len(filling) + 3):
        await asyncio.wait_for(outbox.get(), 1)
    await asyncio.wait_for(asyncio.gather(*writers), 1)


async def test_closing_lets_writers_go_and_swallows_what_comes():
    outbox = Outbox()
    await outbox.put(bytes(MAX_BYTES))
    writer = asyncio.create_task(outbox.put("late"))
    await asyncio.sleep(0.01)
    outbox.close()
    await asyncio.wait_for(writer, 1)
    await outbox.put(bytes(10 * MAX_BYTES))
    outbox.finish(None)
    assert await outbox.get() is None
