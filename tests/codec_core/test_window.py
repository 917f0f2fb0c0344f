from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from codec_core import CodecModel
from codec_core.errors import SettingError
from codec_core.window import parse_budget, plan_window


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("1500000", 1_500_000),
        ("512MiB", 512 << 20),
        ("1.5 GB", 1_500_000_000),
        ("2gib", 2 << 30),
        (" 7KB ", 7000),
    ],
)
def test_budgets(text: str, size: int):
    assert parse_budget(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "MiB", "1e9", "12 parsecs", "0.1", "1.2.3GB", "\uff19MB", "9" * 30, "5GiBB"])
def test_what_is_no_budget(text: str):
    with pytest.raises(SettingError, match="--ram-budget"):
        parse_budget(text, "--ram-budget")


def test_a_plan_tells_what_opening_then_does(tiny_gguf: Path):
    whole = plan_window(tiny_gguf, 1 << 40)
    assert not whole.streams
    assert whole.memory_bytes == whole.full_bytes == CodecModel.open(tiny_gguf).info.weights_bytes
    budget = whole.full_bytes - 1
    plan = plan_window(tiny_gguf, max(budget, whole.minimum_bytes))
    model = CodecModel.open(tiny_gguf, ram_budget_bytes=max(budget, whole.minimum_bytes))
    assert plan.memory_bytes == model.info.weights_bytes
    stats = model.window_stats
    assert (stats is not None) == plan.streams
    if stats is not None:
        shared = {"slots", "slot_bytes", "resident_bytes", "streamed_bytes"}
        assert {name: asdict(stats)[name] for name in shared} == {name: asdict(plan)[name] for name in shared}
