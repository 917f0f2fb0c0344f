"""Abuse, briefly: everything a service must refuse at the same time, beside healthy sessions; CONTRIBUTING.md has more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ABUSE = Path(__file__).parents[1] / "bench" / "abuse.py"
SEED = os.environ.get("MIMI_TEST_SEED", "20261130")
FRAMES = 2_000


@pytest.mark.slow
def test_healthy_sessions_are_unharmed_and_every_refusal_is_counted(tiny_model_path: Path, tmp_path: Path):
    options = {"model": tiny_model_path, "seconds": 5, "sessions": 3, "garbage-frames": FRAMES, "seed": SEED}
    command = [
        sys.executable,
        str(ABUSE),
        "--json",
        *(part for name, value in options.items() for part in (f"--{name}", str(value))),
    ]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False, env=environment)
    print(done.stderr)
    assert done.stdout, done.stderr
    result = json.loads(done.stdout)
    assert result["failures"] == []
    assert done.returncode == 0
    assert result["sessions"]["frames_received"] == 3 * round(5 / 0.08)
    assert result["done"]["frames of garbage"] >= FRAMES
    assert min(result["done"].values()) >= 1
    assert len(result["told"]) >= 8, result["told"]
    # What breaks the framing is told by a close code alone, and counted by name all the same.
    assert result["counted"]["protocol"] >= 1
