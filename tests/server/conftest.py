from __future__ import annotations

import pytest


class ManualClock:
    """Seconds that go on only where a test moves them."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()
