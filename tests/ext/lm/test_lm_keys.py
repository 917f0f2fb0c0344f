"""The keys of a language model's file: each bound, each type, and what contradicts the tensors."""

from __future__ import annotations

from typing import Any

import pytest

from codec_core.errors import ModelFormatError

from .spoiled_file import File


@pytest.mark.parametrize(
    ("key", "value", "found", "expected"),
    [
        ("dim", None, "no such key", "an integer from 1 to 32768"),
        ("num_layers", 0, "0", "1 to 256"),
        ("num_layers", 257, "257", "1 to 256"),
        ("num_heads", 3, "3", "heads of an even width that divide 128"),
        ("num_heads", 128, "128", "heads of an even width that divide 128"),
        ("kv_repeat", 3, "3", "a divisor of 4"),
        ("context", 0, "0", "1 to 65536"),
        ("max_period", 1, "1", "2 to 1000000000"),
        ("dim_feedforward", None, "no such key", "an integer from 2 to 262144"),
        ("n_q", 65, "65", "1 to 64"),
        ("dep_q", 9, "9", "0 to 8"),
        ("card", 65536, "65536", "1 to 65535"),
        ("text_card", 2**21, "2097152", "4 to 1048576"),
        ("text_card_out", 97, "97", "1 to 96"),
        ("gating", "gelu", "'gelu'", "'silu'"),
        ("norm", "rms_norm", "'rms_norm'", "'rms_norm_f32'"),
        ("positional_embedding", "sin", "'sin'", "'rope' or 'rope_concat'"),
        ("causal", False, "false", "true"),
        ("delays", None, "no such key", "an array of 9 integers"),
        ("delays", [0, 0, 1], "3 values", "9"),
        ("depformer.pos_emb", "rope", "'rope'", "'none'"),
        ("depformer.norm", "rms_norm", "'rms_norm'", "'none' or 'layer_norm'"),
        ("depformer.low_rank_embeddings", 65, "65", "0 to 64"),
        ("depformer.weights_per_step_schedule", [0, 1], "2 values", "4"),
        ("inference.dep_q", 5, "5", "1 to 4"),
        ("cross_attention", True, "true", "true where one conditioner has no table of labels, as 0 of the file's have"),
    ],
)
def test_a_key_is_out_of_bounds(refused, key: str, value: Any, found: str, expected: str):
    error = refused(File.of("a").key(key, value))
    if key == "dim" and value is None:
        assert "without metadata" in error.found
        return
    assert (error.subject, error.found, error.expected) == (f"key 'moshi.lm.{key}'", found, expected)


@pytest.mark.parametrize(
    ("key", "values", "found", "expected"),
    [
        ("delays", [0] * 8 + [2000], "2000", "at most 1024"),
        ("depformer.weights_per_step_schedule", [0, 1, 2, 4], "4", "at most 3"),
    ],
)
def test_an_array_holds_too_large_a_number(refused, key: str, values: list[int], found: str, expected: str):
    error = refused(File.of("a").key(key, values))
    subject = f"key 'moshi.lm.{key}' value {len(values) - 1}"
    assert (error.subject, error.found, error.expected) == (subject, found, expected)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("delays", 3, "an array of integers that are not negative"),
        ("delays", [0.5] * 9, "an array of integers that are not negative"),
        ("delays", [0] * 8 + [-1], "an array of integers that are not negative"),
        ("delays", [0] * 66, "at most 65"),
        ("causal", "yes", "a bool"),
        ("dim", "128", "an integer that is not negative"),
        ("gating", 1, "a string"),
    ],
)
def test_a_key_of_another_type(refused, key: str, value: Any, expected: str):
    error = refused(File.of("a").key(key, value), ModelFormatError)
    assert (error.subject, error.expected) == (f"key 'moshi.lm.{key}'", expected)


def test_fewer_keys_contradict_the_tensors(refused):
    assert refused(File.of("a").key("num_layers", 3)).found == "a tensor this model has no use for"
    assert refused(File.of("a").key("num_layers", 5)).found == "no such tensor"
    assert refused(File.of("b").key("depformer.low_rank_embeddings", 0)).found == "(32, 97)"
    assert refused(File.of("b").key("extra_heads.num_heads", 1)).subject == "tensor 'lm.extra_heads.1.weight'"
    assert refused(File.of("h").key("kv_repeat", 1)).expected == "(128, 384): 1 weight set of 384 rows"
