from __future__ import annotations

import asyncio

from server.inbox import Inbox


async def test_order_and_bytes():
    inbox: Inbox[str] = Inbox(max_bytes=100, max_items=10)
    for item in "abc":
        await inbox.put(item, 10)
    assert (len(inbox), inbox.waiting_bytes) == (3, 30)
    assert [await inbox.get() for _ in range(3)] == ["a", "b", "c"]
    assert (len(inbox), inbox.waiting_bytes) == (0, 0)


async def test_full_makes_the_writer_wait_and_empty_the_reader():
    inbox: Inbox[int] = Inbox(max_bytes=25, max_items=100)
    seen: list[int] = []

    async def read() -> None:
        while len(seen) < 50:
            seen.append(await inbox.get())
            assert inbox.waiting_bytes <= 25
            await asyncio.sleep(0)

    async def write() -> None:
        for item in range(50):
            await inbox.put(item, 10)
            assert inbox.waiting_bytes <= 25

    await asyncio.wait_for(asyncio.gather(read(), write()), 5)
    assert seen == list(range(50))


async def test_the_number_of_items_is_bounded_too():
    inbox: Inbox[int] = Inbox(max_bytes=1000, max_items=2)
    await inbox.put(1)
    await inbox.put(2)
    third = asyncio.ensure_future(inbox.put(3))
    await asyncio.sleep(0.01)
    assert not third.done()
    assert await inbox.get() == 1
    await asyncio.wait_for(third, 1)


async def test_one_item_larger_than_the_bound_still_passes():
    inbox: Inbox[str] = Inbox(max_bytes=10, max_items=10)
    await asyncio.wait_for(inbox.put("large", 1000), 1)
    assert await inbox.get() == "large"
