from __future__ import annotations

import asyncio

import pytest

from codec_core.client.received import EndedError, ReceivedQueue
from codec_core.errors import CodecError


async def filled(most: int, *items: int) -> ReceivedQueue[int]:
    queue: ReceivedQueue[int] = ReceivedQueue(most)
    for item in items:
        await queue.put(item)
    return queue


async def test_who_puts_waits_for_room():
    queue = await filled(2, 1, 2)
    putting = asyncio.create_task(queue.put(3))
    await asyncio.sleep(0)
    assert (putting.done(), len(queue)) == (False, 2)
    assert await queue.get() == 1
    await putting
    assert [await queue.get(), await queue.get()] == [2, 3]


async def test_who_gets_waits_for_an_item():
    queue = await filled(1)
    getting = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    assert not getting.done()
    await queue.put(7)
    assert await getting == 7


async def test_what_came_before_the_end_is_handed_out_first():
    queue = await filled(3, 1, 2)
    await queue.end(CodecError("why"))
    await queue.end()
    await queue.put(3)
    assert [await queue.get(), await queue.get()] == [1, 2]
    for _ in range(2):
        with pytest.raises(CodecError, match="why"):
            await queue.get()


async def test_an_end_in_order_wakes_everybody():
    queue = await filled(1)
    getting = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    await queue.end()
    assert all(isinstance(ended, EndedError) for ended in await asyncio.gather(*getting, return_exceptions=True))


async def test_discarding_frees_who_waits_to_put():
    queue = await filled(1, 1)
    putting = asyncio.create_task(queue.put(2))
    await asyncio.sleep(0)
    await queue.discard()
    await putting
    await queue.put(3)
    assert len(queue) == 0
