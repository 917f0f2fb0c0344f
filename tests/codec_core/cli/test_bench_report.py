from __future__ import annotations

import sys
from pathlib import Path

import pytest

from codec_core import CodecModel
from codec_core.bench.comparison import compare
from codec_core.bench.machine import describe_machine
from codec_core.bench.peers import Contender
from codec_core.bench.streams import SteadyState
from codec_core.cli.bench_report import bar, print_comparison


@pytest.mark.parametrize(
    ("share", "text"), [(0, ""), (1, "█" * 40), (0.5, "█" * 20), (1 / 320, "▏"), (0.5 + 7 / 320, "█" * 20 + "▉")]
)
def test_bars(share: float, text: str) -> None:
    assert bar(share) == text


def test_a_comparison(tiny_model: CodecModel, tiny_gguf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    engine = Contender("mimi", sys.executable, str(tiny_gguf))
    state = SteadyState.reach(tiny_model, 4, lambda _done, _total: None)
    found = compare(engine, [], state, batches=(1, 2), seconds=0, progress=lambda _done, _total: None)
    print_comparison(tiny_model.info, describe_machine(), found)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("mimi-synth-tiny, f32, 32 levels, SHA-256 ")
    assert [line for line in lines if line.startswith("batch")] == [
        f"batch {batch}, 4 levels, one thread each: CPU ms of a frame" for batch in (1, 2)
    ]
    assert sum(" 1.000" in line and "100.0 %" in line for line in lines) == 2
