from __future__ import annotations

import pytest

from server.message_pace import LIVE_BEGIN_S, LIVE_PER_S, TOGETHER_S, MessagePace, Turns, shared_turns
from server.rate_limit import BURST_S

LIVE_AT_FIRST = int(LIVE_PER_S * LIVE_BEGIN_S)


def test_turns_are_given_in_order_at_the_rate(clock):
    turns = Turns(10, 0.2, clock)
    assert [turns.take() for _ in range(5)] == pytest.approx([0, 0, 0, 0.1, 0.2])
    clock.now_s += 3600
    # Rest is not saved up beyond what may be taken at once.
    assert [turns.take() for _ in range(4)] == pytest.approx([0, 0, 0, 0.1])


def test_a_live_stream_never_waits_however_much_others_send(clock):
    surplus = Turns(200, TOGETHER_S, clock)
    flood, live = MessagePace(1_000, surplus, clock), MessagePace(1_000, surplus, clock)
    for _ in range(500):
        clock.now_s += 1 / 50
        assert live.take() == 0
        for _ in range(40):
            flood.take()
    assert flood.take() > 10


def test_many_connections_share_the_surplus_and_coming_anew_gains_little(clock):
    surplus = Turns(100, 0, clock)
    for number in range(20):
        pace = MessagePace(1_000, surplus, clock)
        assert [pace.take() for _ in range(LIVE_AT_FIRST)] == [0] * LIVE_AT_FIRST
        assert pace.take() == pytest.approx(number / 100)


def test_one_connection_alone_is_read_at_its_own_rate(clock):
    pace = MessagePace(500, shared_turns(1_000_000), clock)
    waits_s = [pace.take() for _ in range(500 * BURST_S + 51)]
    assert max(waits_s[: 500 * BURST_S]) == 0
    assert waits_s[-1] == pytest.approx(50 / 500, abs=1 / 500)
