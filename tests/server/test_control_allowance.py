from __future__ import annotations

import pytest

from server.control_allowance import BURST_S, ControlAllowance
from server.errors import ControlRateError


def test_a_burst_passes_then_only_the_rate():
    now_s = 100.0
    allowance = ControlAllowance(10, lambda: now_s)
    for _ in range(10 * BURST_S):
        allowance.take()
    with pytest.raises(ControlRateError, match="at most 10 per second, 40 at once"):
        allowance.take()
    for _ in range(50):
        now_s += 0.101
        allowance.take()
    with pytest.raises(ControlRateError):
        allowance.take()
    now_s += 1000
    for _ in range(10 * BURST_S):
        allowance.take()
    with pytest.raises(ControlRateError):
        allowance.take()
