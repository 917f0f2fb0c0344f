from __future__ import annotations

import pytest

from codec_core import CodecModel
from codec_core.bench.streams import SteadyState

LEVELS = 4


def no_progress(_done: int, _total: int) -> None:
    pass


@pytest.fixture(scope="session")
def steady(tiny_model: CodecModel) -> SteadyState:
    """The tiny model's stream with its attention context full."""
    return SteadyState.reach(tiny_model, LEVELS, no_progress)


@pytest.fixture(autouse=True)
def short_peaks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody reads the figures here."""
    monkeypatch.setattr("codec_core.bench.limits.PEAK_SECONDS", 0.01)
    monkeypatch.setattr("codec_core.bench.limits.BANDWIDTH_SECONDS", 0.01)
