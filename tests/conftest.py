"""What every test can rely on: seeded randomness, and the models, made by the project's own generator and converter."""

from __future__ import annotations

import os
import platform
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from codec_core import CodecModel, __version__
from codec_core._ext import Kernels
from codec_core.convert import convert_model
from codec_core.synth import write_synthetic
from tests.engine_build import Engine

SEED = int(os.environ.get("MIMI_TEST_SEED", "20261130"))


def pytest_configure() -> None:
    # A shell that starts the tests in the background has them ignore SIGINT, and every process they start would too.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> str:
    isas = ", ".join(Kernels.usable_isas())
    return f"mimi-server {__version__}, python {platform.python_version()}, instruction sets {isas}, MIMI_TEST_SEED={SEED}"


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator of its own for each test; pytest's header prints the seed."""
    return np.random.default_rng(SEED)


def _synthetic_gguf(folder: Path, preset: str) -> Path:
    checkpoint = folder / f"{preset}.safetensors"
    write_synthetic(checkpoint, preset)
    convert_model(checkpoint, checkpoint.with_suffix(".gguf"))
    checkpoint.unlink()
    return checkpoint.with_suffix(".gguf")


@pytest.fixture(scope="session")
def tiny_model_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """4 filters, dim 16, 2 layers of 2 heads, context 8, 32 codebooks of 32 entries: its ring wraps after four frames."""
    return _synthetic_gguf(tmp_path_factory.mktemp("tiny_model"), "tiny")


@pytest.fixture(scope="session")
def tiny_model(tiny_model_path: Path) -> CodecModel:
    return CodecModel.open(tiny_model_path)


@pytest.fixture(scope="session")
def default_model() -> CodecModel:
    return CodecModel.open("default")


@pytest.fixture(scope="session")
def full_model_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The full-size synthetic model that the golden vectors were made with."""
    return _synthetic_gguf(tmp_path_factory.mktemp("full_model"), "full")


@pytest.fixture(scope="session")
def full_model(full_model_path: Path) -> CodecModel:
    return CodecModel.open(full_model_path)


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The engine compiled without Python, for tests in C++ and for changes of its text; takes half a minute."""
    engine = Engine(tmp_path_factory.mktemp("engine"))
    yield engine
    engine.pool.shutdown(cancel_futures=True)


@pytest.fixture
def pcm(rng: np.random.Generator) -> np.ndarray:
    """40 frames and a bit of a gliding tone in noise, float32: no two frames alike."""
    at_s = np.arange(40 * 1920 + 700) / 24000
    tone = 0.3 * np.sin(2 * np.pi * (140 + 90 * at_s) * at_s) * (0.6 + 0.4 * np.sin(5 * at_s))
    return (tone + 0.05 * rng.standard_normal(len(at_s))).astype(np.float32)
