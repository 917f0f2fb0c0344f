"""Chaos, briefly: cut, silent and slow lines, hostile peers, restarts by SIGTERM and ``kill -9``; CONTRIBUTING.md has more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CHAOS = Path(__file__).parents[1] / "bench" / "chaos.py"
SEED = os.environ.get("MIMI_TEST_SEED", "20261130")
SECONDS = 8


@pytest.mark.slow
def test_every_stream_survives_and_nothing_is_left_behind(tiny_model_path: Path, tmp_path: Path):
    options = {"seconds": SECONDS, "streams": 5, "stream-seconds": 5, "restart-seconds": 3.5, "grace-seconds": 12, "seed": SEED}
    command = [sys.executable, str(CHAOS), "--model", str(tiny_model_path), "--json"]
    command += [part for name, value in options.items() for part in (f"--{name}", str(value))]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False)
    print(done.stderr)
    assert done.stdout, done.stderr
    result = json.loads(done.stdout)
    assert result["failures"] == []
    assert done.returncode == 0
    assert result["streams"] >= 5
    assert result["frames"] > 200
    faults = result["faults"]
    assert {"SIGTERM", "SIGKILL"} <= faults.keys(), faults
    assert {"cut", "silence", "slow"} & faults.keys(), faults
    assert result["lines"]["resumed"] >= 5
