"""``mimi convert`` and ``mimi inspect`` of language models and voice prompts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from codec_core.synth import write_synthetic
from tests.lm_sources import train_tokenizer, write_checkpoint, write_raw


@pytest.fixture
def words(tmp_path: Path) -> Path:
    return train_tokenizer(tmp_path / "words.model", 96)


def test_a_language_model(mimi, words: Path, tmp_path: Path) -> None:
    source, output = write_checkpoint(tmp_path / "x.safetensors", "b", dtype="bf16"), tmp_path / "x.gguf"
    outcome = mimi("convert", source, "-o", output, "--tokenizer", words)
    assert outcome.status == 0, outcome.errors
    assert f"{output}: x, a language model, bf16, f32, " in outcome.output
    assert "pieces of text" in outcome.output
    assert "from Kyutai checkpoint" in outcome.output
    shown = mimi("inspect", output, "--tensors").output
    for text in (
        "language model",
        "8 codebooks of 64: 4 its own, 4 the user's",
        "96 tokens, padding 3",
        "0 0 2 2 2 0 2 2 2 steps, text first",
        "4 layers, 4 heads of 32, width 128, gating 352, context 24 steps",
        "4 codebooks, 3 weight sets",
        "2 of 6",
        "pieces, unigram",
        "config sha256",
        "source sha256",
        "depformer_emb",
        "lm.transformer.layers.0.self_attn.in_projs.0.weight",
        "384 x 128",
    ):
        assert text in shown, text
    found = json.loads(mimi("inspect", output, "--json").output)
    assert (found["component"], found["geometry"]["own_levels"], found["tokenizer"]["model_type"]) == ("lm", 4, "unigram")
    assert found["tokenizer"]["special_ids"] == {"unknown": 0, "bos": 1, "eos": 2, "padding": 3}
    assert found["file_bytes"] == output.stat().st_size
    assert {tensor["type"] for tensor in found["tensors"]} == {"f32", "bf16"}


def test_a_language_model_under_a_budget(mimi, language_model_path) -> None:
    path = language_model_path("a")

    def plan(budget: object) -> dict[str, int]:
        return json.loads(mimi("inspect", path, "--ram-budget", budget, "--json").output)["window_plan"]

    def shown(budget: object) -> str:
        return " ".join(mimi("inspect", path, "--ram-budget", budget).output.split())

    whole = plan("1GB")
    assert (whole["slots"], whole["resident_table_bytes"]) == (0, whole["table_bytes"])
    assert "nothing is read again" in shown("1GB")
    assert plan(whole["full_bytes"] - 1)["memory_bytes"] == whole["full_bytes"] - whole["table_bytes"]
    assert "of which rows are read from the file layers that stay" in shown(whole["full_bytes"] - 1)
    least = plan(whole["minimum_bytes"])
    assert (least["slots"], least["memory_bytes"]) == (1, whole["minimum_bytes"])
    assert "read every step" in shown(whole["minimum_bytes"])
    outcome = mimi("inspect", path, "--ram-budget", "1KB")
    assert outcome.status == 2
    assert f"at least {whole['minimum_bytes']} bytes" in outcome.errors


def test_a_raw_language_model_is_refused_until_it_is_converted(mimi, tmp_path: Path) -> None:
    raw = write_raw(tmp_path / "raw.gguf", "c")
    outcome = mimi("inspect", raw)
    assert outcome.status == 1
    assert "mimi convert" in outcome.errors
    report = json.loads(mimi("convert", raw, "-o", tmp_path / "x.gguf", "--tokenizer", "none", "--json").output)
    assert (report["source_kind"], report["tokenizer_pieces"], report["component"]) == ("raw GGUF", 0, "lm")
    shown = mimi("inspect", tmp_path / "x.gguf").output
    for text in ("condition cfg", "one of 3 labels", "condition speaker_wavs", "rows of 32", "text tokenizer", "none"):
        assert text in shown, text


def test_a_voice_prompt(mimi, tmp_path: Path) -> None:
    source = tmp_path / "ann.safetensors"
    save_file({"embeddings": np.zeros((5, 1, 1, 16), "f4"), "cache": np.zeros((1, 17, 4), "i8")}, source)
    outcome = mimi("convert", source, "-o", tmp_path / "ann.gguf")
    assert "ann, a voice prompt, 5 steps of 16, 17 channels" in outcome.output, outcome.errors
    shown = mimi("inspect", tmp_path / "ann.gguf").output
    assert "voice prompt" in shown
    assert "17 channels, 4 slots" in shown
    assert json.loads(mimi("inspect", tmp_path / "ann.gguf", "--json").output)["geometry"]["steps"] == 5


@pytest.mark.parametrize(
    ("model", "arguments", "message"),
    [
        ("lm", ("--quantize", "q5_k"), "quantize: found q5_k, expected q8_0 or q4_k or q4_0"),
        ("voice", ("--quantize", "q8_0"), "quantize: found q8_0, expected nothing: a voice prompt has no such setting"),
        ("lm", ("--levels", 4), "levels: found 4, expected nothing"),
        ("lm", ("--form", "raw"), "form: found raw, expected nothing"),
        ("lm", ("--dtype", "q4_0"), "dtype: found q4_0, expected f32 or f16 or bf16 or keep"),
        ("mimi", ("--config", "config.json"), "config: found config.json, expected nothing: the codec has no such setting"),
        ("mimi", ("--tokenizer", "none"), "tokenizer: found none, expected nothing: the codec has no such setting"),
        ("voice", ("--dtype", "f16"), "dtype: found f16, expected nothing: a voice prompt has no such setting"),
    ],
)
def test_settings_of_another_component(mimi, model: str, arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    source = tmp_path / "x.safetensors"
    if model == "lm":
        write_checkpoint(source, "s")
    elif model == "voice":
        save_file({"embeddings": np.zeros((5, 1, 1, 16), "f4"), "cache": np.zeros((1, 17, 4), "i8")}, source)
    else:
        write_synthetic(source, "tiny")
    outcome = mimi("convert", source, "-o", tmp_path / "y.gguf", *arguments)
    assert outcome.status == 2
    assert message in outcome.errors
