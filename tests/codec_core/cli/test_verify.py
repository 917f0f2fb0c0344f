from __future__ import annotations

import json
from pathlib import Path


def test_a_line_for_every_check(mimi) -> None:
    outcome = mimi("verify", "--quick")
    assert (outcome.status, outcome.errors) == (0, "")
    lines = outcome.output.splitlines()
    assert lines[0].startswith("mimi ")
    assert sum("passed  " in line for line in lines) >= 20
    assert "default model, kyutai vectors" in lines
    assert "all passed" in lines[-1]


def test_json(mimi, tiny_gguf: Path) -> None:
    outcome = mimi("verify", "--quick", "--json", "-m", tiny_gguf, "--numerics", "kyutai")
    report = json.loads(outcome.output)
    assert outcome.status == 0
    assert report["passed"] is True
    assert report["numerics"] == ["kyutai"]
    assert report["instruction_sets"][-1] == "scalar"
    assert {"group", "name", "passed", "seconds", "detail", "difference"} == set(report["checks"][0])


def test_failures(mimi, tiny_gguf: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(tiny_gguf.read_bytes()[:5000])
    outcome = mimi("verify", "--quick", "-m", broken)
    assert outcome.status == 1
    assert "FAILED" in outcome.output
    assert "model_format: " in outcome.output
    assert json.loads(mimi("verify", "--quick", "--json", "-m", broken).output)["passed"] is False
    assert mimi("verify", "--numerics", "exact").status == 2
    assert mimi("verify", "--vectors", tmp_path).status == 2
