"""Threads that share a model get the results of sessions by themselves; under ThreadSanitizer it is CONTRIBUTING's command."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.engine_build import Engine, compiler

HARNESS = Path(__file__).with_name("engine_threads.cc")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(compiler() is None, reason="no C++ compiler here"),
]


@pytest.fixture(scope="module")
def program(engine: Engine) -> Path:
    return engine.with_main(HARNESS, [])


@pytest.mark.parametrize(("threads", "window"), [(1, 0), (3, 0), (2, 1)])
def test_callers_of_one_model_do_not_see_one_another(program: Path, tiny_model_path: Path, threads: int, window: int):
    command = [program, tiny_model_path, str(threads), str(window), "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == 48
