"""From a checkpoint, or a raw file of moshi.cpp, through the converter to the recorded tokens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from codec_core.convert import convert_language_model
from codec_core.language_model import LanguageModel
from tests.lm_sources import write_checkpoint, write_raw

from .language_runs import RUNS, Run, make, recorded_runs, tokens_of

SOURCES: dict[str, Callable[[Path, str], Path]] = {
    "fused": lambda folder, model: write_checkpoint(folder / "x.safetensors", model),
    "split": lambda folder, model: write_checkpoint(folder / "x.safetensors", model, split=True),
    "raw": lambda folder, model: write_raw(folder / "x.gguf", model),
}
FIRST_RUNS = {run.model: run for run in reversed(RUNS)}
WAYS = [*((model, "raw") for model in FIRST_RUNS), ("a", "fused"), ("c", "split")]


@pytest.mark.parametrize(
    ("run", "source"), [(FIRST_RUNS[model], source) for model, source in WAYS], ids=["-".join(way) for way in WAYS]
)
def test_a_converted_model_says_what_was_recorded(tmp_path: Path, run: Run, source: str):
    path = tmp_path / "converted.gguf"
    convert_language_model(SOURCES[source](tmp_path, run.model), path, tokenizer="none")
    runs = recorded_runs()
    expected = runs[f"{run.name}/out_tokens"]
    assert np.array_equal(tokens_of(make(run, LanguageModel.open(path), runs).outputs, expected.shape[1]), expected)


@pytest.mark.parametrize("dtype", ["bf16", "q8_0", "q4_0"])
def test_a_raw_file_of_narrow_weights_runs(tmp_path: Path, dtype: str):
    path = tmp_path / "converted.gguf"
    convert_language_model(write_raw(tmp_path / "x.gguf", "a", dtype), path, tokenizer="none")
    model = LanguageModel.open(path)
    assert model.info.weight_class == dtype
    session = model.session()
    outputs = [session.step(codes) for codes in recorded_runs()["user"][:20]]
    assert len({output[0] for output in outputs[1:]}) > 5
