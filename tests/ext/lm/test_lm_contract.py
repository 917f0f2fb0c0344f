"""A language model's file: every published layout is taken, and what contradicts itself is refused by name and number."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from codec_core import _ext
from codec_core.errors import ModelContractError
from codec_core.synth_lm import lm_arrays

from .spoiled_file import File

LAYER = "transformer.layers.2."


def test_geometry_is_read(opened):
    geometry = opened(File.of("c")).geometry
    assert geometry["own_levels"] == 8
    assert geometry["user_levels"] == 0
    assert geometry["weight_sets"] == (0, 1, 2, 3, 3, 3, 3, 3)
    assert geometry["text_ids"] == 97 * 98
    assert geometry["depformer"]["gating_width"] == 192
    assert [(entry["name"], entry["labels"]) for entry in geometry["conditioners"]] == [
        ("cfg", 3),
        ("control", 1),
        ("speaker_wavs", 0),
    ]
    grouped = opened(File.of("h")).geometry
    assert (grouped["temporal"]["key_heads"], grouped["depformer"]["key_heads"]) == (2, 4)
    assert grouped["depformer"]["gating_width"] == 176
    assert opened(File.of("s")).geometry["user_levels"] == 8


@pytest.mark.parametrize("split", [False, True], ids=["fused", "split"])
@pytest.mark.parametrize(
    "name",
    [
        "emb.7.weight",
        "text_emb.weight",
        "text_emb.out2.weight",
        "text_linear.weight",
        "out_norm.alpha",
        LAYER + "norm1.alpha",
        LAYER + "norm_cross.bias",
        LAYER + "gating.linear_out.weight",
        "depformer_in.3.weight",
        "depformer_text_emb.out1.weight",
        "depformer_emb.6.weight",
        "depformer_emb.0.low_rank.weight",
        "depformer.layers.1.gating.2.linear_out.weight",
        "depformer.layers.0.norm2.alpha",
        "linears.7.weight",
        "condition_provider.conditioners.cfg.learnt_padding",
    ],
)
def test_a_tensor_is_missed_by_name(refused, name: str, split: bool):
    file = File.of("c", split=split)
    del file.arrays[name]
    error = refused(file)
    assert (error.subject, error.found) == (f"tensor 'lm.{name}'", "no such tensor")


def test_missing_attention_is_missed_in_both_layouts(refused):
    file = File.of("a")
    del file.arrays[LAYER + "self_attn.in_proj_weight"]
    error = refused(file)
    assert error.subject == f"tensor 'lm.{LAYER}self_attn.in_projs.0.weight'"
    assert error.expected == f"it, or all sets fused in 'lm.{LAYER}self_attn.in_proj_weight'"
    file = File.of("a", split=True)
    del file.arrays["depformer.layers.1.self_attn.out_projs.3.weight"]
    assert refused(file).subject == "tensor 'lm.depformer.layers.1.self_attn.out_projs.3.weight'"


def test_both_layouts_at_once_are_one_too_many(refused):
    file = File.of("a")
    name = LAYER + "self_attn.out_proj.weight"
    file.arrays[LAYER + "self_attn.out_projs.0.weight"] = file.arrays[name]
    error = refused(file)
    assert (error.subject, error.found) == (f"tensor 'lm.{LAYER}self_attn.out_projs.0.weight'", f"beside 'lm.{name}'")


@pytest.mark.parametrize("name", ["extra", "depformer_in.4.weight", "emb.8.weight", LAYER + "gating.0.linear_in.weight"])
def test_a_tensor_too_many(refused, name: str):
    file = File.of("a")
    file.arrays[name] = np.zeros((4, 4), np.float32)
    error = refused(file)
    assert (error.subject, error.found) == (f"tensor 'lm.{name}'", "a tensor this model has no use for")


@pytest.mark.parametrize(
    ("name", "rows", "found", "expected"),
    [
        ("emb.3.weight", 1, "(128, 64)", "(128, 65)"),
        ("text_emb.weight", 1, "(128, 96)", "(128, 97)"),
        ("text_linear.weight", 1, "(128, 95)", "(128, 96)"),
        ("linears.2.weight", 1, "(64, 63)", "(64, 64)"),
        (LAYER + "self_attn.in_proj_weight", 128, "(128, 256)", "(128, 384): 1 weight set of 384 rows"),
        ("depformer.layers.0.self_attn.in_proj_weight", 192, "(64, 576)", "(64, 768): 4 weight sets of 192 rows"),
        ("depformer.layers.0.self_attn.out_proj.weight", 1, "(64, 255)", "(64, 256): 4 weight sets of 64 rows"),
        (LAYER + "gating.linear_in.weight", 2, "(128, 702)", "(128, 704)"),
        ("depformer_emb.1.weight", 64, "64", "(64, 65)"),
    ],
)
def test_a_shape_contradicts_the_keys(refused, name: str, rows: int, found: str, expected: str):
    error = refused(File.of("a").cut_rows(name, rows))
    assert error.subject == f"tensor 'lm.{name}' dims"
    assert found in error.found
    assert error.expected == expected


def test_a_raw_file_is_refused_with_the_remedy(refused):
    error = refused(File(lm_arrays("a", split=True), {}))
    assert (error.subject, error.found) == ("file", "a language model without metadata (a raw file of moshi.cpp)")
    assert "`mimi convert` makes one" in error.expected


def test_files_of_something_else(refused, tiny_model_path: Path):
    for key, value in (("moshi.component", "voice"), ("moshi.component", "mimi")):
        file = File.of("a")
        file.metadata[key] = value
        assert refused(file).subject == "key 'moshi.component'"
    with pytest.raises(ModelContractError, match="'mimi', expected 'lm'"):
        _ext.LanguageModel.open(str(tiny_model_path))
    assert refused(File({}, File.of("a").metadata)).found == "no tensors"


@pytest.mark.parametrize(
    ("name", "index"), [("emb.2.weight", 100), (LAYER + "gating.linear_in.weight", 90_000), ("out_norm.alpha", 127)]
)
@pytest.mark.parametrize(("value", "shown"), [(np.nan, "NaN"), (-np.inf, "-infinity")])
def test_a_value_that_is_not_finite(refused, name: str, index: int, value: float, shown: str):
    file = File.of("a")
    file.arrays[name] = file.arrays[name].copy()
    file.arrays[name].reshape(-1)[index] = value
    error = refused(file)
    assert (error.subject, error.found) == (f"tensor 'lm.{name}'", f"{shown} at index {index}")


def test_integers_are_no_weights(refused):
    file = File.of("a")
    file.arrays["text_linear.weight"] = file.arrays["text_linear.weight"].astype(np.int32)
    error = refused(file)
    assert (error.subject, error.found) == ("tensor 'lm.text_linear.weight' type", "i32")
    assert error.expected == "f32, f16, bf16, q8_0, q4_0 or q4_k"


def test_layouts_and_spare_tensors_that_are_taken(opened):
    """A gating of one set may be numbered, a fused attention named as a linear layer, and what is never used may be there."""
    file = File.of("a")
    for layer in range(4):
        path = f"transformer.layers.{layer}."
        for stored in ("linear_in.weight", "linear_out.weight"):
            file.arrays[f"{path}gating.0.{stored}"] = file.arrays.pop(f"{path}gating.{stored}")
        file.arrays[f"{path}self_attn.in_proj.weight"] = file.arrays.pop(f"{path}self_attn.in_proj_weight")
    file.arrays["depformer_emb.3.weight"] = file.arrays["depformer_emb.2.weight"]
    assert opened(file).weight_class == "f32"
    spare = File.of("c")
    assert "depformer_text_emb.low_rank.weight" in spare.arrays
    opened(spare)
    del spare.arrays["depformer_text_emb.low_rank.weight"]
    opened(spare)


def test_a_model_that_also_predicts_the_user_needs_only_its_own_levels(opened, refused):
    """Two of four levels are the model's own: the user's are six, and what only the others need may be missing."""
    file = File.of("a").key("inference.dep_q", 2)
    geometry = opened(file).geometry
    assert (geometry["own_levels"], geometry["user_levels"], geometry["depformer_levels"]) == (2, 6, 4)
    for layer in range(2):
        path = f"depformer.layers.{layer}."
        for name, rows in (("self_attn.in_proj_weight", 2 * 192), ("self_attn.out_proj.weight", 2 * 64)):
            file.arrays[path + name] = file.arrays[path + name][:rows]
        for level in (2, 3):
            for stored in ("linear_in.weight", "linear_out.weight"):
                del file.arrays[f"{path}gating.{level}.{stored}"]
    for level in (2, 3):
        del file.arrays[f"depformer_in.{level}.weight"], file.arrays[f"linears.{level}.weight"]
    opened(file)
    del file.arrays["linears.1.weight"]
    assert refused(file).subject == "tensor 'lm.linears.1.weight'"
