"""The load client, briefly: what it counts is true. The figures themselves are for a quiet machine, see CONTRIBUTING.md."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

LOAD = Path(__file__).parents[1] / "bench" / "load.py"
FRAMES = 15


@pytest.fixture
def load(tiny_model_path: Path, tmp_path: Path):
    """load(*options) runs the load client; returns its exit status and result."""

    def run(*options: str) -> tuple[int, dict[str, Any]]:
        command = [sys.executable, "-P", str(LOAD), "--model", str(tiny_model_path), "--seconds", str(FRAMES * 0.08)]
        # The scripts import their neighbours, which -P keeps out of the way.
        environment = {"PYTHONPATH": str(LOAD.parent), "TMPDIR": str(tmp_path), "PATH": "/usr/bin:/bin"}
        done = subprocess.run(
            [*command, *options, "--json", "-"], capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
        )
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    return run


def test_every_code_is_checked_and_refusals_are_counted(load):
    """ANCHORS C2: what is claimed of latency can be measured by anyone."""
    options = ("--sessions", "5", "--admitted", "3", "--serve-options", "--max-sessions 3 --credit-frames 50")
    status, result = load(*options, "--ramp", "0.5")
    assert status == 0
    assert (result["sessions_tried"], result["sessions_admitted"], result["refusals"]) == (5, 3, {"capacity": 2})
    assert (result["frames_sent"], result["frames_received"]) == (3 * FRAMES, 3 * FRAMES)
    assert (result["wrong_frames"], result["lost_frames"], result["ended_by_the_service"]) == (0, 0, {})
    assert 0 < result["latency_ms"]["p50"] <= result["latency_ms"]["p99"] <= result["latency_ms"]["max"]
    assert result["service_cpu_percent"] > 0


def test_codes_of_another_numerics_are_found_wrong(load):
    status, result = load("--sessions", "1", "--numerics", "ggml", "--serve-options", "--numerics kyutai")
    assert status == 1
    assert 0 < result["wrong_frames"] <= result["frames_received"] == FRAMES


def test_a_service_that_ends_a_session_is_told(load):
    status, result = load("--sessions", "2", "--serve-options", "--session-timeout-ms 600")
    assert status == 1
    assert result["ended_by_the_service"] == {"session_timeout": 2}
    assert result["lost_frames"] > 0
    assert result["wrong_frames"] == 0
