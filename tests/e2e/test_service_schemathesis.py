"""Whatever can be made from ``/openapi.json``, and much that cannot: every answer is one that is described there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
# Bytes that are described as a sound file need not be one, so what fits the description may still be refused.
LEFT_OUT = "positive_data_acceptance"
KEY = "a-key-of-the-tests"


@pytest.mark.slow
@pytest.mark.parametrize("key", ["", KEY], ids=["open", "with keys"])
def test_every_answer_is_described(start_service, monkeypatch, tmp_path, rng, key):
    monkeypatch.setenv("MIMI_API_KEYS", key)
    service = start_service("--model", "default", "--max-clip-ms", "4000")
    chosen = str(rng.integers(2**31))
    sent = ["--header", f"X-API-Key: {key}"] if key else []
    done = subprocess.run(
        [SCHEMATHESIS, "--no-color", "run", f"{service.url}/openapi.json", "--exclude-checks", LEFT_OUT, "--seed", chosen,
         "--max-examples", "10", "--generation-database", "none", "--suppress-health-check", "all", *sent],
        cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    described = httpx.get(f"{service.url}/openapi.json").json()["paths"]
    assert f"Tested: {sum(len(path) for path in described.values())}" in done.stdout, done.stdout
    load = httpx.get(f"{service.url}/v1/info", headers={"x-api-key": key}).json()["load"]
    assert (load["conversions"], load["spooled_bytes"]) == (0, 0)
    assert load["frames"] > 0
    assert "Traceback" not in service.log
