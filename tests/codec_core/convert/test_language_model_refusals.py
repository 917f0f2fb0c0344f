"""Language models that are not converted: what does not fit together is told by name and number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codec_core import CodecModel
from codec_core.convert import convert_language_model, convert_model
from codec_core.errors import CheckpointError, ModelContractError, SettingError
from codec_core.gguf_file import GgufFile, check_language_model
from codec_core.synth_lm import lm_arrays
from tests.lm_sources import (
    raw_tensors,
    save_arrays,
    train_tokenizer,
    write_checkpoint,
    write_config,
    write_raw,
    write_raw_tensors,
)


def damaged(model: str, **changes: Any) -> dict[str, np.ndarray]:
    """A model's arrays with some changed; None takes one away."""
    arrays = lm_arrays(model)
    for name, change in changes.items():
        key = name.replace("__", ".")
        array = arrays.pop(key, None)
        if change is not None:
            arrays[key] = change(array)
    return arrays


IN_PROJ = "transformer__layers__1__self_attn__in_proj_weight"
TENSORS: list[tuple[dict[str, Any], type[Exception], str]] = [
    (
        {IN_PROJ: lambda a: a[:-1]},
        CheckpointError,
        r"in_proj_weight': shape: found \[383, 128\], expected 384 rows: 1 weight sets of 384",
    ),
    (
        {"depformer__layers__0__self_attn__out_proj__weight": lambda a: a[:64]},
        CheckpointError,
        r"out_proj.weight': shape: found \[64, 64\], expected 256 rows: 4 weight sets of 64",
    ),
    (
        {"emb__3__weight": lambda a: a[:-1]},
        ModelContractError,
        r"tensor 'lm.emb.3.weight' dims: found \(128, 64\), expected \(128, 65\)",
    ),
    ({"out_norm__alpha": None}, ModelContractError, "tensor 'lm.out_norm.alpha': found no such tensor"),
    (
        {"linears__4__weight": lambda _: np.zeros((64, 64))},
        ModelContractError,
        "tensor 'lm.linears.4.weight': found a tensor this model",
    ),
    ({"surprise": lambda _: np.zeros((2, 2))}, CheckpointError, "tensor 'surprise': found a name no rule knows"),
    (
        {"text_linear__weight_scb": lambda _: np.zeros(96)},
        CheckpointError,
        "the row scales of a checkpoint in int8, expected .*bf16",
    ),
    (
        {"transformer__layers__0__self_attn__in_proj__lora_A__weight": lambda _: np.zeros((8, 128))},
        CheckpointError,
        r"\(LoRA\), expected whole weights: merge them",
    ),
    (
        {"text_emb__weight": lambda a: np.where(a == a[5, 7], np.nan, a)},
        ModelContractError,
        "tensor 'lm.text_emb.weight': found NaN at",
    ),
    (
        {"transformer__layers__1__self_attn__in_projs__0__weight": lambda _: np.zeros((384, 128))},
        CheckpointError,
        "tensor 'lm.transformer.layers.1.self_attn.in_projs.0.weight': found a second one",
    ),
]


@pytest.mark.parametrize(("changes", "error", "message"), TENSORS, ids=[next(iter(case[0])) for case in TENSORS])
def test_tensors_that_do_not_fit(changes: dict[str, Any], error: type[Exception], message: str, tmp_path: Path) -> None:
    write_config(tmp_path, "a")
    save_arrays(tmp_path / "x.safetensors", damaged("a", **changes))
    with pytest.raises(error, match=message):
        convert_language_model(tmp_path / "x.safetensors", tmp_path / "x.gguf", tokenizer="none")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "x.safetensors"]


CONFIGS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"dim": 64}, CheckpointError, r"shape: found \[384, 128\], expected 192 rows"),
    ({"card": 63}, ModelContractError, r"tensor 'lm.emb.0.weight' dims: found \(128, 65\), expected \(128, 64\)"),
    ({"num_layers": 5}, ModelContractError, "lm.transformer.layers.4"),
    ({"n_q": 9, "delays": [0] * 10}, ModelContractError, "lm.emb.8.weight"),
    ({"norm": ...}, ModelContractError, "'moshi.lm.norm': found 'layer_norm', expected 'rms_norm_f32'"),
    ({"positional_embedding": ...}, ModelContractError, "'moshi.lm.positional_embedding': found 'sin'"),
    ({"gating": ..., "depformer_gating": "silu"}, ModelContractError, "'moshi.lm.gating': found 'none', expected 'silu'"),
    ({"depformer_pos_emb": ...}, ModelContractError, "'moshi.lm.depformer.pos_emb': found 'sin'"),
    ({"num_heads": 3}, ModelContractError, "moshi.lm.num_heads"),
]


@pytest.mark.parametrize(("changes", "error", "message"), CONFIGS, ids=[next(iter(case[0])) for case in CONFIGS])
def test_a_config_of_another_model(changes: dict[str, Any], error: type[Exception], message: str, tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "x.safetensors", "a")
    write_config(tmp_path, "a", **changes)
    with pytest.raises(error, match=message):
        convert_language_model(tmp_path / "x.safetensors", tmp_path / "x.gguf", tokenizer="none")


def test_more_pieces_than_the_model_has_tokens(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "x.safetensors", "a")
    train_tokenizer(tmp_path / "x.model", 120)
    with pytest.raises(CheckpointError, match=r"x.model: found 120 pieces, expected at most 96, the model's text_card"):
        convert_language_model(tmp_path / "x.safetensors", tmp_path / "x.gguf", tokenizer=tmp_path / "x.model")


def test_shortened_names(tmp_path: Path) -> None:
    write_raw(tmp_path / "x.gguf", "c")
    tensors = raw_tensors("c")
    (short,) = [name for name in tensors if not name.startswith("lm.")]
    convert_language_model(tmp_path / "x.gguf", tmp_path / "out.gguf", tokenizer="none")
    assert "lm.condition_provider.conditioners.speaker_wavs.output_proj.weight" in GgufFile(tmp_path / "out.gguf").tensors
    write_raw_tensors(tmp_path / "x.gguf", {("00000000" if name == short else name): value for name, value in tensors.items()})
    with pytest.raises(CheckpointError, match="tensor '00000000': found the short form of no name"):
        convert_language_model(tmp_path / "x.gguf", tmp_path / "x2.gguf", tokenizer="none")


def test_what_else_is_refused(tmp_path: Path, tiny_gguf: Path) -> None:
    checkpoint = write_checkpoint(tmp_path / "x.safetensors", "a")
    with pytest.raises(SettingError, match="dtype: found q8_0, expected f32 or f16 or bf16 or keep"):
        convert_language_model(checkpoint, tmp_path / "x.gguf", dtype="q8_0")
    with pytest.raises(CheckpointError, match=r"a Moshi language model.*mimi convert"):
        convert_model(checkpoint, tmp_path / "x.gguf")
    (tmp_path / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"config.json: found no such file, expected .*--config moshi-7b"):
        convert_language_model(checkpoint, tmp_path / "x.gguf")
    with pytest.raises(CheckpointError, match=r"expected 24576 rows: 8 weight sets of 3072"):
        convert_language_model(checkpoint, tmp_path / "x.gguf", config="moshi-7b", tokenizer="none")
    with pytest.raises(CheckpointError, match=r"a name without 'lm\.'"):
        convert_language_model(tiny_gguf, tmp_path / "x.gguf", tokenizer="none")
    raw = write_raw(tmp_path / "raw.gguf", "a")
    for opened in (lambda: CodecModel.open(raw), lambda: check_language_model(GgufFile(raw))):
        with pytest.raises(ModelContractError, match="mimi convert"):
            opened()
    assert json.loads((tmp_path / "config.json").read_text())["card"] == 64
