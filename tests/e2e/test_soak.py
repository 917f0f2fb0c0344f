"""The soak, briefly: what it compares is compared, and what is wrong is found. A day of it is in docs/operations.md."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SOAK = Path(__file__).parents[1] / "bench" / "soak.py"
LANDMARK_FRAMES = (1 << 20) // 2


@pytest.fixture
def soak(tiny_model_path: Path, tmp_path: Path):
    """soak(kind, *options) runs it; returns its exit status and result."""

    def run(kind: str, *options: str) -> tuple[int, dict[str, Any]]:
        command = [sys.executable, str(SOAK), kind, "--model", str(tiny_model_path), "--json", *options]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    return run


STREAM = ("--hours", "0.004", "--from-frame", str(LANDMARK_FRAMES - 90), "--block-frames", "40", "--windows", "2")


def test_a_stream_past_2_to_the_20_steps_is_computed_three_times(soak):
    """ANCHORS D2, D3: far positions, the same bits from any beginning and without a cache."""
    status, result = soak("stream", *STREAM, "--check-every", "2")
    assert (status, result["failures"]) == (0, [])
    assert result["last_position_steps"] == 2 * (LANDMARK_FRAMES - 90 + 180)
    assert (result["checked_blocks"], result["checked_frames"]) == (3, 120)
    assert result["uncached_codes"] > result["uncached_near_ties"]


def test_a_state_that_is_not_the_stream_s_is_found(soak):
    """Sessions that were given less than a frame can hear."""
    status, result = soak("stream", *STREAM, "--hear-frames", "4")
    assert status == 1
    assert result["wrong_states"] > 0


def test_sessions_through_a_service(soak):
    """ANCHORS D4, E1: nothing is held when they are over."""
    status, result = soak("service", "--hours", "0.0004", "--sessions", "2", "--sample-seconds", "0.2")
    assert (status, result["failures"]) == (0, [])
    assert result["frames_sent"] == result["frames_received"] == 2 * 18
    assert result["resident_mb"]
