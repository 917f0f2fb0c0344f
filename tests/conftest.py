"""What every test can rely on: seeded randomness, and the models, made by the project's own generator and converter."""

from __future__ import annotations

import functools
import os
import platform
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from codec_core import CodecModel, __version__
from codec_core._ext import Kernels
from codec_core.convert import convert_model
from codec_core.language_model import LanguageModel
from codec_core.synth import PRESETS, write_synthetic
from codec_core.synth_tensors import SynthPreset
from tests.engine_build import Engine
from tests.lm_files import write_lm_model
from tests.redis_process import running_redis
from tests.talk_models import write_talk_model

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


WIDE_PRESET = SynthPreset("wide", 4, 64, 2, 2, 96, 8, 32, 32)
"""Widths of whole blocks of 32, as the class q8_0 needs them."""


@pytest.fixture(scope="session")
def wide_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As tiny, but dim 64: it can be quantised."""
    path = tmp_path_factory.mktemp("wide") / "wide.safetensors"
    PRESETS["wide"] = WIDE_PRESET
    try:
        write_synthetic(path, "wide")
    finally:
        del PRESETS["wide"]
    return path


@pytest.fixture(scope="session")
def quantised_model_path(wide_checkpoint: Path) -> Path:
    """The wide model in class q8_0."""
    path = wide_checkpoint.with_name("wide-q8_0.gguf")
    convert_model(wide_checkpoint, path, quantize="q8_0")
    return path


@pytest.fixture(scope="session")
def quantised_model(quantised_model_path: Path) -> CodecModel:
    return CodecModel.open(quantised_model_path)


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
def language_model_path(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """path(model, split, dtype): one of the synthetic language models a, b, s, c, h, written when first asked for."""
    folder = tmp_path_factory.mktemp("language_models")

    def path(model: str, split: bool = False, dtype: str = "f32") -> Path:
        file = folder / f"{model}-{'split' if split else 'fused'}-{dtype}.gguf"
        # Once: a model that reads it must find it as it was.
        return file if file.exists() else write_lm_model(file, model, split=split, dtype=dtype)

    return path


@pytest.fixture(scope="session")
def language_models(language_model_path: Callable[..., Path]) -> Callable[..., LanguageModel]:
    """models(model, split, dtype, threads): the same, opened once."""

    @functools.cache
    def opened(model: str, split: bool = False, dtype: str = "f32", threads: int = 1) -> LanguageModel:
        return LanguageModel.open(language_model_path(model, split, dtype), threads)

    return opened


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


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One Redis for all tests, which have keys of their own."""
    with running_redis(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture(scope="session")
def talk_model_path(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """path(kind, codebook_entries): a language model of :mod:`tests.talk_models`, by default for the embedded codec."""
    folder = tmp_path_factory.mktemp("talk_models")

    @functools.cache
    def path(kind: str, codebook_entries: int = 1024) -> Path:
        return write_talk_model(folder / f"{kind}-{codebook_entries}", kind, codebook_entries)

    return path
