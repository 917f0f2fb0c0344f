"""A step that has run before asks nothing of the heap: no allocation can fail, wait or fragment while a frame is due."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.engine_build import Engine, compiler

HARNESS = Path(__file__).with_name("frame_path.cc")
ROUNDS = 12

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(compiler() is None, reason="no C++ compiler here"),
]


@pytest.fixture(scope="module")
def program(engine: Engine) -> Path:
    return engine.with_main(HARNESS, ["-Wl,--wrap=aligned_alloc"])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("numerics", ["kyutai", "ggml"])
def test_a_step_allocates_nothing(program: Path, tiny_model_path: Path, numerics: str, batch: int, threads: int) -> None:
    command = [program, tiny_model_path, numerics, str(threads), str(batch), str(ROUNDS)]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    opening, *rounds = map(int, done.stdout.split())
    assert opening > 100, "the count sees what opening a model allocates"
    # A thread that comes to its first piece late brings its scratch then.
    assert len(rounds) == ROUNDS
    assert rounds.count(0) >= ROUNDS - threads, rounds
