from __future__ import annotations

import pytest

from server import rate_limit
from server.errors import HandshakeRateError
from server.rate_limit import BURST_S, HandshakeGate, RateLimit


def test_a_burst_then_the_rate(clock):
    limit = RateLimit(5, clock)
    assert [limit.take() for _ in range(5 * BURST_S)] == [0.0] * 5 * BURST_S
    assert limit.take() == pytest.approx(0.2)
    # What was refused was not counted.
    clock.now_s += 0.201
    assert limit.take() == 0
    assert limit.take() > 0
    clock.now_s += 3600
    assert [limit.take() == 0 for _ in range(5 * BURST_S + 1)] == [True] * 5 * BURST_S + [False]


def test_clients_are_counted_apart_and_told_when_to_come_back(clock, monkeypatch):
    """ANCHORS E3: a reason of its own."""
    gate = HandshakeGate(2, clock)
    for _ in range(2 * BURST_S):
        gate.pass_one("192.0.2.1")
    with pytest.raises(HandshakeRateError, match=r"192\.0\.2\.1.*at most 2 per second") as refusal:
        gate.pass_one("192.0.2.1")
    assert 0 < refusal.value.retry_after_ms <= 501
    gate.pass_one("192.0.2.2")
    clock.now_s += 0.51
    gate.pass_one("192.0.2.1")
    monkeypatch.setattr(rate_limit, "MOST_CLIENTS", 3)
    for number in range(10):
        gate.pass_one(f"198.51.100.{number}")
    assert len(gate._limits) <= 4
