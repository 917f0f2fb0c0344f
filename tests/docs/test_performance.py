"""docs/performance.md against the code it describes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from codec_core import CodecModel, _ext
from codec_core.bench.limits import workload
from codec_core.bench.peers import CALLS_A_TURN, PEERS
from codec_core.bench.stages import AFTER_THE_LAST
from codec_core.bench.streams import MARGIN_FRAMES, STEPS_PER_FRAME

PAGE = (Path(__file__).parents[2] / "docs" / "performance.md").read_text()
PROSE = " ".join(PAGE.split())


@pytest.mark.parametrize(("row", "direction", "levels"), [("encode, 8 levels", "encode", 8), ("decode", "decode", 8)])
def test_the_work_of_a_frame(full_model: CodecModel, row: str, direction: str, levels: int):
    work = workload(_ext.inspect_model(full_model.info.path), levels, full_model.info.weights_bytes).of(direction)
    said = re.search(rf"^\| {row} \| ([\d.]+) million \| ([\d.]+) million \| ([\d.]+) MB \|$", PAGE, re.M)
    assert said is not None
    assert said.groups() == tuple(f"{amount / 1e6:.1f}" for amount in (work.macs, work.weights, work.context_bytes))


def test_the_warm_up(full_model: CodecModel):
    context = full_model.info.context_steps
    names = {5: "five"}
    said = f"({context} steps, {context // STEPS_PER_FRAME} frames, and {names[MARGIN_FRAMES]} more)"
    assert said in PROSE


def test_names():
    assert all(f"`{name}`" in PAGE for name in AFTER_THE_LAST.values())
    assert all(peer in PROSE for peer in PEERS)
    assert CALLS_A_TURN == 5
    assert "five calls each" in PROSE
