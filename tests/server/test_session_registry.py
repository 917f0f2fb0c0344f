from __future__ import annotations

import asyncio
import contextlib
import time

import pytest

from server.admission import Admission, demand_of
from server.errors import AddressCapacityError, CapacityError, DrainingError, OverloadedError
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

    queued_frames = 1.5
    unsent_bytes = 7

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
    await places.drain(10_000, 5_000)
    assert time.monotonic() - started_s < 5
    assert holder.told == [10_000]
    with pytest.raises(DrainingError, match=r"found .+, expected ."), places.lease("conversion"):
        pass


async def test_those_that_stay_are_stopped_when_the_time_is_over():
    places = registry()
    obedient, stubborn = Holder(places, obeys=True), Holder(places, obeys=False)
    await asyncio.sleep(0)
    assert (places.queued_frames, places.unsent_bytes) == (3.0, 14)
    await places.drain(50, 5_000)
    assert obedient.told == [50]
    assert stubborn.told == [50, "draining"]
    await stubborn.task


async def test_hurry_cuts_the_wait_short():
    places = registry()
    holder = Holder(places, obeys=False)
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_later(0.05, places.hurry)
    await asyncio.wait_for(places.drain(60_000, 5_000), 5)
    assert holder.told == [60_000, "draining"]
    await holder.task


def test_each_client_has_its_share():
    places = registry(max_sessions=3, max_address_sessions=1)
    with places.lease("stream", client="192.0.2.1"), places.lease("stream", client="192.0.2.2"):
        with pytest.raises(AddressCapacityError, match=r"192\.0\.2\.1") as refusal, places.lease("stream", client="192.0.2.1"):
            pass
        assert refusal.value.retry_after_ms == 50
        # Conversions are few, and counted together.
        with places.lease("conversion", client="192.0.2.1"):
            pass
    with places.lease("stream", client="192.0.2.1"):
        assert places.count("stream") == 1


def test_a_place_goes_over_to_who_takes_over_and_to_nobody_else():
    """ANCHORS E1: it is neither lost nor there twice, whoever gives it back first."""
    cost = StepCost()
    cost.calibrate("encode_batch", [(1, 0.03), (2, 0.05)])
    admission = Admission("measured", cost)
    places = SessionRegistry(admission, Metrics(), max_sessions=1, max_address_sessions=1, max_conversions=1, retry_after_ms=50)
    old, new, demand = object(), object(), demand_of("encode", 8)
    with places.lease("stream", old, client="192.0.2.1") as first:
        first.load(demand)
        before = admission.load()
        with places.lease("stream", new, client="192.0.2.1", in_place_of=old) as second:
            second.load(demand, resumed=True)
            assert (places.count("stream"), admission.load()) == (1, before)
            for gone in (old, object()):
                with pytest.raises(CapacityError), places.lease("stream", client="192.0.2.2", in_place_of=gone):
                    pass
            assert not places.give_back(first)
            assert (places.count("stream"), admission.load()) == (1, before)
    assert (places.count("stream"), admission.load().headroom) == (0, 1)


def test_a_place_that_goes_to_another_address_counts_there():
    places = registry(max_sessions=3, max_address_sessions=1)
    old = object()
    with places.lease("stream", old, client="192.0.2.1"), places.lease("stream", client="192.0.2.2"):
        with pytest.raises(AddressCapacityError), places.lease("stream", client="192.0.2.2", in_place_of=old):
            pass
        with places.lease("stream", client="192.0.2.3", in_place_of=old), places.lease("stream", client="192.0.2.1"):
            assert places.count("stream") == 3


async def test_those_that_have_no_place_yet_are_stopped_at_once():
    places = registry()
    holder = Holder(registry(), obeys=False)
    with places.waiting(holder):
        assert places.count("stream") == 0
        await places.drain(10_000, 10_000)
    assert holder.told == ["draining"]
    with pytest.raises(DrainingError), places.waiting(holder):
        pass
    await holder.task


def test_what_is_let_in_weighs_until_its_place_is_given_back():
    cost = StepCost()
    cost.calibrate("encode_batch", [(1, 0.03), (2, 0.05)])
    admission = Admission("measured", cost, retry_after_ms=50)
    places = SessionRegistry(admission, Metrics(), max_sessions=9, max_address_sessions=9, max_conversions=1, retry_after_ms=50)
    demand = demand_of("encode", 8)
    with places.lease("stream") as first:
        first.load(demand)
        assert admission.load().headroom < 1
        with places.lease("stream") as second, places.lease("stream") as third:
            second.load(demand)
            with pytest.raises(OverloadedError):
                third.load(demand)
            # Who was let in before, and comes back, is not asked again.
            third.load(demand, resumed=True)
            assert admission.load().headroom < 0
        assert admission.load().headroom > 0
    assert admission.load().headroom == 1
