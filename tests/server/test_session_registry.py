from __future__ import annotations

import asyncio
import contextlib
import time

import pytest

from server.admission import Admission
from server.errors import CapacityError, DrainingError
from server.metrics import Metrics
from server.session_registry import SessionRegistry
from server.step_cost import StepCost


def registry(**caps: int) -> SessionRegistry:
    caps = {"max_sessions": 2, "max_address_sessions": 2, "max_conversions": 1, **caps}
    return SessionRegistry(Admission("count", StepCost()), Metrics(), retry_after_ms=50, **caps)


class Holder:
    """A stream that ends when told to, or when stopped."""

    def __init__(self, places: SessionRegistry, *, obeys: bool) -> None:
        self.obeys = obeys
        self.told: list[object] = []
        self._ended = asyncio.Event()
        self.task = asyncio.create_task(self._run(places))

    async def _run(self, places: SessionRegistry) -> None:
        with places.lease("stream", self):
            await self._ended.wait()

    def go_away(self, time_left_ms: int) -> None:
        self.told.append(time_left_ms)
        if self.obeys:
            self._ended.set()

    def stop(self, error: DrainingError) -> None:
        self.told.append(error.code)
        self._ended.set()


def test_places_are_counted_by_kind_and_always_given_back():
    places = registry()
    with places.lease("stream") as first, places.lease("stream") as second, places.lease("conversion"):
        assert first.session_id != second.session_id
        for kind in ("stream", "conversion"):
            with pytest.raises(CapacityError) as refusal, places.lease(kind):
                pass
            assert refusal.value.retry_after_ms == 50
    assert places.refused == 2
    for _ in range(5):
        with contextlib.suppress(KeyError), places.lease("stream"):
            raise KeyError
    assert places.count("stream") == places.count("conversion") == 0


async def test_draining_ends_as_soon_as_the_last_stream_has():
    places = registry()
    holder = Holder(places, obeys=True)
    await asyncio.sleep(0)
    started_s = time.monotonic()
    await places.drain(10_000)
    assert time.monotonic() - started_s < 5
    assert holder.told == [10_000]
    with pytest.raises(DrainingError, match=r"found .+, expected ."), places.lease("conversion"):
        pass


async def test_those_that_stay_are_stopped_when_the_time_is_over():
    places = registry()
    obedient, stubborn = Holder(places, obeys=True), Holder(places, obeys=False)
    await asyncio.sleep(0)
    await places.drain(50)
    assert obedient.told == [50]
    assert stubborn.told == [50, "draining"]
    await stubborn.task


async def test_hurry_cuts_the_wait_short():
    places = registry()
    holder = Holder(places, obeys=False)
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_later(0.05, places.hurry)
    await asyncio.wait_for(places.drain(60_000), 5)
    assert holder.told == [60_000, "draining"]
    await holder.task
