"""Threads that share a model get the results of sessions by themselves; under ThreadSanitizer it is CONTRIBUTING's command."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engine_build import Engine, compiler

CODEC = Path(__file__).with_name("engine_threads.cc")
LANGUAGE = Path(__file__).parents[1] / "lm" / "language_threads.cc"
WAYS = pytest.mark.parametrize(("threads", "window"), [(1, 0), (3, 0), (2, 1)])

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(compiler() is None, reason="no C++ compiler here"),
]


def steps_of(program: Path, *arguments: object) -> int:
    done = subprocess.run([program, *map(str, arguments), "2"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.fixture(scope="module")
def codec(engine: Engine) -> Path:
    return engine.with_main(CODEC, [])


@pytest.fixture(scope="module")
def language(engine: Engine) -> Path:
    return engine.with_main(LANGUAGE, [])


@WAYS
def test_callers_of_one_codec_do_not_see_one_another(codec: Path, tiny_model_path: Path, threads: int, window: int):
    assert steps_of(codec, tiny_model_path, threads, window) == 48


@WAYS
def test_callers_of_one_language_model_do_not_see_one_another(
    language: Path, language_model_path: Callable[..., Path], threads: int, window: int
):
    assert steps_of(language, language_model_path("a"), threads, window) == 36
