from __future__ import annotations

import asyncio
import threading

import pytest

from server.errors import CapacityError
from server.spool import Spool, SpoolBudget, in_thread


@pytest.mark.parametrize("memory_bytes", [0, 100, 10_000])
async def test_bytes_come_back_from_memory_and_from_disk(memory_bytes, rng):
    budget = SpoolBudget(10_000, 1)
    pieces = [rng.bytes(int(size)) for size in rng.integers(0, 400, 20)]
    whole = b"".join(pieces)
    with Spool(budget, memory_bytes) as spool:
        for piece in pieces:
            await spool.append(piece)
            assert spool.read(0, len(whole)) == whole[: spool.size_bytes]
        assert spool.read(1000, 77) == whole[1000:1077]
        assert spool.read(len(whole), 5) == b""
        assert budget.held_bytes == len(whole)
    assert budget.held_bytes == 0


async def test_all_spools_share_one_budget():
    budget = SpoolBudget(100, 1234)
    with Spool(budget, 1000) as first, Spool(budget, 1000) as second:
        await first.append(bytes(60))
        with pytest.raises(CapacityError, match="spool: found 60 of 100 bytes held") as refusal:
            await second.append(bytes(41))
        assert refusal.value.retry_after_ms == 1234
        await second.append(bytes(40))
        first.close()
        first.close()
        await second.append(bytes(60))
        assert budget.held_bytes == 100


async def test_what_another_writer_put_in_counts_too():
    budget = SpoolBudget(100, 1)
    with Spool(budget, 10) as spool:
        spool.file.write(bytes(90))
        spool.adopt()
        assert (spool.size_bytes, budget.held_bytes) == (90, 90)
        spool.file.write(bytes(11))
        with pytest.raises(CapacityError):
            spool.adopt()
    assert budget.held_bytes == 0


async def test_a_cancelled_call_is_waited_for():
    begun, release = threading.Event(), threading.Event()
    ended = []

    def work():
        begun.set()
        release.wait(10)
        ended.append(True)

    task = asyncio.create_task(in_thread(work))
    await asyncio.to_thread(begun.wait, 10)
    task.cancel()
    await asyncio.sleep(0)
    assert not ended
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended
