"""What the replay runs inside a container runs here against a service that is a plain process."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from dockerfile import ImageConfig, configure, read_stages

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "deploy" / "docker"
CLIP = ROOT / "tests" / "golden" / "vectors" / "signals" / "sample_2.wav"
TIMEOUT_S = 60


@contextlib.contextmanager
def service(folder: Path, model: Path, **variables: str) -> Iterator[str]:
    """Run a service; yields its port."""
    log = folder / "log"
    environment = os.environ | {"MIMI_PORT": "0", "MIMI_MODEL": str(model), **variables}
    with log.open("wb") as output:
        process = subprocess.Popen([sys.executable, "-P", "-m", "server"], env=environment, stdout=output, stderr=output)
    try:
        deadline_s = time.monotonic() + TIMEOUT_S
        while not (found := re.search(r"serves on http://\S+:(\d+)", log.read_text())):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline_s, log.read_text()
            time.sleep(0.02)
        yield found[1]
    finally:
        process.terminate()
        assert process.wait(TIMEOUT_S) == 0


def run(command: list[str], variables: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    environment = os.environ | variables
    return subprocess.run(
        command, env=environment, input=CLIP.read_bytes(), capture_output=True, timeout=TIMEOUT_S, check=False
    )


def health_check() -> list[str]:
    config = ImageConfig()
    for instruction in read_stages((ROOT / "Dockerfile").read_text())[-1].instructions:
        if instruction.keyword == "HEALTHCHECK":
            configure(config, instruction)
    return [sys.executable, "-P", *config.healthcheck[1:]]


@pytest.mark.parametrize(("keys", "asks"), [("a-key,another", "key"), ("", "open")])
def test_the_client_finds_a_service_as_promised(tmp_path: Path, tiny_model_path: Path, keys: str, asks: str):
    variables = {"MIMI_API_KEYS": keys, "MIMI_MODEL": str(tiny_model_path)}
    program = (SCRIPTS / "check_service.py").read_text()
    with service(tmp_path, tiny_model_path, MIMI_API_KEYS=keys) as port:
        done = run([sys.executable, "-P", "-c", program, port, asks], variables)
        assert done.returncode == 0, done.stderr.decode()
        assert json.loads(done.stdout)["frames"] == 88
        assert run(health_check(), {"MIMI_PORT": port}).returncode == 0
        if keys:
            wrong = run([sys.executable, "-P", "-c", program, port, asks], variables | {"MIMI_API_KEYS": "wrong"})
            assert wrong.returncode != 0
    assert run(health_check(), {"MIMI_PORT": port}).returncode != 0


def test_the_client_notices_an_open_door(tmp_path: Path, tiny_model_path: Path):
    program = (SCRIPTS / "check_service.py").read_text()
    with service(tmp_path, tiny_model_path, MIMI_API_KEYS="") as port:
        variables = {"MIMI_API_KEYS": "a-key", "MIMI_MODEL": str(tiny_model_path)}
        done = run([sys.executable, "-P", "-c", program, port, "key"], variables)
    assert done.returncode != 0
    assert "without a key" in done.stderr.decode()


def test_the_replay_says_what_it_misses():
    done = run([sys.executable, str(SCRIPTS / "replay.py")], {"PATH": os.devnull})
    assert done.returncode == 1
    assert re.search(r"^replay: (not installed: mmdebstrap, |found an ordinary user)", done.stderr.decode())
