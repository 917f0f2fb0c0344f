"""ANCHORS E1, G5: no place stays taken by somebody who is gone."""

from __future__ import annotations

import asyncio
import contextlib
import logging

import numpy as np
import pytest

from server import watchdog as module
from server.admission import Admission, demand_of
from server.codec_executor import CodecExecutor
from server.metrics import Metrics
from server.session_registry import SessionRegistry
from server.step_cost import StepCost
from server.watchdog import Watchdog


class Places:
    """A registry with its watchdog."""

    def __init__(self, model, interval_ms: int = 10_000) -> None:
        self.metrics = Metrics()
        self.admission = Admission("measured", StepCost())
        self.executor = CodecExecutor(model)
        self.registry = SessionRegistry(
            self.admission, self.metrics, max_sessions=4, max_address_sessions=2, max_conversions=1, retry_after_ms=1
        )
        self.watchdog = Watchdog(self.registry, self.executor, self.metrics, interval_ms=interval_ms)
        self.stacks: list[contextlib.ExitStack] = []

    async def leak(self, kind: str = "stream") -> None:
        """Take a place and end without giving it back, as only a fault could."""
        stack = contextlib.ExitStack()
        self.stacks.append(stack)

        async def forget() -> None:
            stack.enter_context(self.registry.lease(kind, client="192.0.2.1")).load(demand_of("encode", 8))

        await asyncio.create_task(forget())


@pytest.fixture
def places(tiny_model):
    made = Places(tiny_model)
    yield made
    made.executor.close()
    for stack in made.stacks:
        stack.close()


async def test_a_place_in_use_is_left_alone(places):
    with places.registry.lease("stream") as lease:
        assert not lease.is_leaked
        assert places.watchdog.audit().leaked_leases == 0
        assert places.registry.count("stream") == 1


async def test_leaked_places_are_given_back_counted_and_logged(places, caplog):
    for kind in ("stream", "stream", "conversion"):
        await places.leak(kind)
    assert (places.registry.count("stream"), places.registry.count("conversion")) == (2, 1)
    assert places.admission.load().headroom == 1  # nothing was measured
    with caplog.at_level(logging.ERROR):
        assert places.watchdog.audit().leaked_leases == 3
    assert caplog.text.count("without giving its place back") == 3
    assert (places.registry.count("stream"), places.registry.count("conversion")) == (0, 0)
    text = places.metrics.text().decode()
    assert 'mimi_leaked_leases_total{kind="stream"} 2.0' in text
    assert "mimi_audits_total 1.0" in text
    # The places are there again, for the same address too, and giving back twice takes nothing away.
    for stack in places.stacks:
        stack.close()
    with places.registry.lease("stream", client="192.0.2.1"), places.registry.lease("stream", client="192.0.2.1"):
        assert places.registry.count("stream") == 2


async def test_it_looks_by_itself(tiny_model):
    places = Places(tiny_model, interval_ms=10)
    places.watchdog.start()
    try:
        await places.leak()
        for _ in range(1000):
            if not places.registry.count("stream"):
                break
            await asyncio.sleep(0.01)
        assert places.registry.count("stream") == 0
    finally:
        await places.watchdog.stop()
        places.executor.close()
        places.stacks[0].close()


async def test_a_step_that_does_not_come_back_is_told(places, tiny_model, monkeypatch):
    assert places.watchdog.stuck_step() is None
    monkeypatch.setattr(module, "STUCK_STEP_S", 0.0)
    step = asyncio.ensure_future(places.executor.encode(tiny_model.encoder(8), np.zeros(1920, np.float32)))
    await asyncio.sleep(0)
    for _ in range(5):
        if places.executor.longest_step_s:
            break
        await asyncio.sleep(0)
    assert "a step has taken" in places.watchdog.stuck_step()
    assert places.watchdog.audit().stuck_step
    await step
    assert places.watchdog.stuck_step() is None
