"""``mimi lm``: figures of the real thing, how far one model is from another, and models to measure on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from codec_core._ext import Kernels
from codec_core.codes_file import CodesDocument, write_codes
from codec_core.convert import convert_language_model
from codec_core.gguf_file import GgufFile
from codec_core.language_model import LanguageModel
from tests.lm_sources import write_checkpoint


@pytest.fixture
def converted(tmp_path: Path) -> Callable[..., Path]:
    """converted(model, quantize) is the path of a small model."""

    def convert(model: str = "a", quantize: str | None = None) -> Path:
        path = tmp_path / f"{model}-{quantize}.gguf"
        source = write_checkpoint(tmp_path / "x.safetensors", model)
        convert_language_model(source, path, quantize=quantize, tokenizer="none", force=True)
        return path

    return convert


def test_bench(mimi, converted: Callable[..., Path]) -> None:
    path = converted("a", "q8_0")
    outcome = mimi("lm", "bench", path, "--batch", "1,3", "--threads", "1,2", "--seconds", 0, "--json")
    assert outcome.status == 0, outcome.errors
    found = json.loads(outcome.output)
    model = LanguageModel.open(path)
    assert [run["threads"] for run in found["runs"]] == [1, 2]
    for run in found["runs"]:
        assert run["isa"] == model.info.isa
        assert run["file_bytes"] == path.stat().st_size
        assert run["weights_bytes"] == model.info.weights_bytes
        assert run["temporal_bytes"] + run["depformer_bytes"] < run["weights_bytes"]
        assert run["loaded_bytes"] <= run["peak_bytes"]
        assert [times["batch"] for times in run["steps"]] == [1, 3]
        for times in run["steps"]:
            rate = 1000 * (run["temporal_bytes"] + run["depformer_bytes"]) / times["step_ms_median"]
            assert times["read_bytes_per_s"] == pytest.approx(rate)
            assert times["percent_of_bandwidth"] == pytest.approx(100 * rate / run["bandwidth_bytes_per_s"])
            assert times["real_time_factor"] == pytest.approx(times["step_ms_median"] / 80)
            assert times["steps"] >= 5
            assert 0 < times["temporal_ms_median"] < times["step_ms_median"] <= times["step_ms_p95"]
            assert 0 < times["depformer_ms_median"] < times["step_ms_median"]


def test_bench_of_another_instruction_set(mimi, converted: Callable[..., Path]) -> None:
    outcome = mimi("lm", "bench", converted("s", "q4_0"), "--threads", 1, "--seconds", 0, "--isa", "scalar")
    assert outcome.status == 0, outcome.errors
    assert "1 thread, scalar: loaded in" in outcome.output
    assert "GB/s" in outcome.output


def test_bench_says_what_is_wrong(mimi, tmp_path: Path) -> None:
    assert mimi("lm", "bench", tmp_path / "x.gguf", "--batch", "0").status == 2
    outcome = mimi("lm", "bench", tmp_path / "x.gguf", "--isa", "sse9")
    assert outcome.status == 2
    assert f"isa: found sse9, expected {Kernels.usable_isas()[0]}" in outcome.errors
    outcome = mimi("lm", "bench", tmp_path / "x.gguf")
    assert outcome.status == 1
    assert "x.gguf" in outcome.errors


def test_the_matrices_of_a_step_are_all_that_the_file_has(converted: Callable[..., Path]) -> None:
    """Widths are whole blocks and heights whole sixteens, so that nothing is filled up but scales to whole rows."""
    path = converted("a")
    info = LanguageModel.open(path).info
    stored = {name: tensor.size_bytes for name, tensor in GgufFile(path).tensors.items() if len(tensor.dims) == 2}
    depformer = sum(size for name, size in stored.items() if "depformer" in name or "linears" in name)
    tables = sum(size for name, size in stored.items() if "emb" in name)
    depformer_tables = sum(size for name, size in stored.items() if "depformer" in name and "emb" in name)
    assert info.depformer_bytes == depformer - depformer_tables
    assert info.temporal_bytes == sum(stored.values()) - depformer - (tables - depformer_tables)


def test_a_weight_set_counts_as_often_as_it_is_used(converted: Callable[..., Path]) -> None:
    path = converted("b")
    stored = {name: tensor.size_bytes for name, tensor in GgufFile(path).tensors.items() if len(tensor.dims) == 2}
    of_sets = dict.fromkeys(range(3), 0)
    for name, size in stored.items():
        parts = name.split(".")
        if name.startswith("lm.depformer_in."):
            of_sets[int(parts[2])] += size
        elif name.startswith("lm.depformer.layers."):
            of_sets[int(next(part for part in parts[4:] if part.isdigit()))] += size
    others = sum(size for name, size in stored.items() if "linears" in name or ("depformer" in name and "low_rank" in name))
    assert LanguageModel.open(path).info.depformer_bytes == of_sets[0] + of_sets[1] + 2 * of_sets[2] + others


def test_drift(mimi, converted: Callable[..., Path], tmp_path: Path) -> None:
    wide, narrow = converted("a"), converted("a", "q8_0")
    same = json.loads(mimi("lm", "drift", wide, wide, "--steps", 8, "--json").output)
    assert same["steps"] == 8
    assert (same["text"], same["audio"]) == ({"relative_rms": 0.0, "match": 1.0},) * 2
    assert same["levels"] == [{"relative_rms": 0.0, "match": 1.0}] * 4
    codes = np.random.default_rng(2).integers(0, 64, (4, 30)).astype(np.int32)
    write_codes(tmp_path / "user.npy", CodesDocument(codes))
    found = json.loads(mimi("lm", "drift", narrow, wide, tmp_path / "user.npy", "--json").output)
    assert found["steps"] == 30
    assert found["model"]["weight_class"] == "q8_0"
    for name in ("text", "audio"):
        assert 0.01 < found[name]["relative_rms"] < 0.1
        assert 0.7 < found[name]["match"] <= 1
    by_level = np.mean([level["relative_rms"] for level in found["levels"]])
    assert by_level == pytest.approx(found["audio"]["relative_rms"], rel=0.3)
    shown = mimi("lm", "drift", narrow, wide, "--steps", 3).output
    assert "codebook 3" in shown
    assert "relative RMS" in shown


def test_drift_of_a_model_without_codes_of_its_own(mimi, converted: Callable[..., Path]) -> None:
    found = json.loads(mimi("lm", "drift", converted("s", "q4_0"), converted("s"), "--steps", 6, "--json").output)
    assert found["audio"] is None
    assert found["levels"] == []
    assert 0.05 < found["text"]["relative_rms"] < 0.8


def test_drift_of_models_that_differ(mimi, converted: Callable[..., Path]) -> None:
    outcome = mimi("lm", "drift", converted("s"), converted("a"))
    assert outcome.status == 2
    assert "own_levels of" in outcome.errors


@pytest.mark.parametrize("weights", ["q8_0", "q4_k", "q4_0", "bf16"])
def test_synthetic_models(mimi, weights: str, tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    small = ("--layers", 1, "--dim", 256, "--depformer-layers", 1, "--depformer-dim", 256, "--card", 64, "--text-card", 96)
    outcome = mimi("lm", "synth", "-o", path, "--weights", weights, *small)
    assert outcome.status == 0, outcome.errors
    assert f"{path}: 1 layers of 256, {weights}, " in outcome.output
    model = LanguageModel.open(path)
    assert model.info.weight_class == weights
    assert (model.info.own_levels, model.info.user_levels) == (8, 8)
    session = model.session()
    logits: list[np.ndarray] = []
    for step in range(3):
        session.step([step] * 8, observer=lambda name, values: logits.append(values.copy()) if "logits" in name else None)
    assert all(np.isfinite(values).all() and values.std() > 0.1 for values in logits)
    assert mimi("lm", "synth", "-o", path, "--weights", weights, *small).status == 1


def test_sizes_no_synthetic_model_has(mimi, tmp_path: Path) -> None:
    outcome = mimi("lm", "synth", "-o", tmp_path / "x.gguf", "--dim", 100)
    assert outcome.status == 2
    assert "dim: found 100, expected a multiple of 256, 1 or more" in outcome.errors
    assert mimi("lm", "synth", "-o", tmp_path / "x.gguf", "--weights", "q3_k").status == 2


def test_the_group_lists_its_commands(mimi) -> None:
    shown = mimi("lm", "--help").output
    assert all(name in shown for name in ("bench", "drift", "synth"))
