from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from codec_core.convert import convert_model
from codec_core.errors import CheckpointError, CodecError, ModelAccessError, ModelContractError

Reader = Callable[[Path], tuple[dict[str, Any], dict[str, Any]]]
Change = Callable[[dict[str, np.ndarray], dict[str, Any]], None]
LAYER = "encoder_transformer.layers.1.self_attn."
BOOK = "quantizer.acoustic_residual_vector_quantizer.layers.3.codebook."


def rewritten(source: Path, directory: Path, change: Change) -> Path:
    """Write the model again after change(tensors, config)."""
    tensors, config = load_file(source / "model.safetensors"), json.loads((source / "config.json").read_text())
    change(tensors, config)
    directory.mkdir()
    save_file(tensors, directory / "model.safetensors")
    (directory / "config.json").write_text(json.dumps(config))
    return directory


def payloads(path: Path, read_gguf: Reader) -> dict[str, tuple[list[int], bytes]]:
    return {name: ([int(size) for size in tensor.shape], tensor.data.tobytes()) for name, tensor in read_gguf(path)[1].items()}


@pytest.mark.parametrize(("given", "dtype"), [("", "f32"), ("model.safetensors", "f16")])
def test_it_is_the_same_model_as_kyutais(  # noqa: PLR0917 - fixtures
    given: str, dtype: str, tiny_transformers: Path, tiny_checkpoint: Path, tmp_path: Path, read_gguf: Reader
) -> None:
    source = tiny_transformers / given
    report = convert_model(source, tmp_path / "theirs.gguf", dtype=dtype)
    kyutais = convert_model(tiny_checkpoint, tmp_path / "kyutais.gguf", dtype=dtype)
    theirs, ours = payloads(tmp_path / "theirs.gguf", read_gguf), payloads(tmp_path / "kyutais.gguf", read_gguf)
    assert theirs == ours
    assert (report.source_kind, report.name, report.numerics) == ("transformers checkpoint", "tiny-mimi", "kyutai")
    assert (report.levels, report.default_levels) == (32, 8)  # as moshi uses it, whatever the config counts
    assert report.unchanged_tensors == kyutais.unchanged_tensors - 4  # four attention inputs are put together anew


def test_geometry_comes_from_the_config(tiny_transformers: Path, tmp_path: Path, read_gguf: Reader) -> None:
    convert_model(tiny_transformers, tmp_path / "x.gguf")
    metadata, _ = read_gguf(tmp_path / "x.gguf")
    assert [metadata[f"moshi.mimi.transformer.{key}"] for key in ("num_heads", "context", "max_period")] == [2, 8, 10000]


@pytest.mark.parametrize(
    ("settings", "period"),
    [
        ({"rope_theta": 500}, 500),
        ({"rope_parameters": {"rope_theta": 700.0, "rope_type": "default"}}, 700),
        ({"rope_parameters": None, "rope_theta": 900.0}, 900),
        ({}, 10000),
    ],
)
def test_the_rotary_period_has_had_two_places(
    settings: dict[str, Any], period: int, tiny_transformers: Path, tmp_path: Path, read_gguf: Reader
) -> None:
    def change(_: dict[str, np.ndarray], config: dict[str, Any]) -> None:
        del config["rope_theta"]
        config.update(settings)

    convert_model(rewritten(tiny_transformers, tmp_path / "x", change), tmp_path / "x.gguf")
    assert read_gguf(tmp_path / "x.gguf")[0]["moshi.mimi.transformer.max_period"] == period


def test_what_the_config_leaves_out_is_mimis(tiny_transformers: Path, tmp_path: Path, read_gguf: Reader) -> None:
    def change(_: dict[str, np.ndarray], config: dict[str, Any]) -> None:
        config.clear()

    convert_model(rewritten(tiny_transformers, tmp_path / "x", change), tmp_path / "x.gguf")
    metadata, _ = read_gguf(tmp_path / "x.gguf")
    assert [metadata[f"moshi.mimi.transformer.{key}"] for key in ("num_heads", "context", "max_period")] == [8, 250, 10000]


def test_half_precision_projections_are_widened(tiny_transformers: Path, tmp_path: Path, read_gguf: Reader) -> None:
    def narrow(tensors: dict[str, np.ndarray], _: dict[str, Any]) -> None:
        tensors[LAYER + "k_proj.weight"] = tensors[LAYER + "k_proj.weight"].astype(np.float16)

    convert_model(rewritten(tiny_transformers, tmp_path / "x", narrow), tmp_path / "x.gguf")
    convert_model(tiny_transformers, tmp_path / "whole.gguf")
    name = f"mimi.{LAYER}in_projs.0.weight".replace("transformer.layers", "transformer.transformer.layers")
    found, whole = (read_gguf(tmp_path / file)[1][name].data for file in ("x.gguf", "whole.gguf"))
    assert np.array_equal(found[16:32], whole[16:32].astype(np.float16).astype(np.float32))
    assert np.array_equal(found[:16], whole[:16])
    assert np.array_equal(found[32:], whole[32:])


def test_links_into_a_hub_cache_are_followed(tiny_transformers: Path, tmp_path: Path) -> None:
    (tmp_path / "snapshot").mkdir()
    for name in ("model.safetensors", "config.json"):
        (tmp_path / "snapshot" / name).symlink_to(tiny_transformers / name)
    assert convert_model(tmp_path / "snapshot", tmp_path / "x.gguf").name == "snapshot"


def put(name: str, array: np.ndarray) -> Change:
    return lambda tensors, _: tensors.update({name: array})


def drop(name: str) -> Change:
    return lambda tensors, _: tensors.__delitem__(name)


def say(**values: Any) -> Change:
    return lambda _, config: config.update(values)


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (put("extra.weight", ones(3)), CheckpointError, "tensor 'extra.weight': found a name no rule knows"),
        (put("encoder.layers.0.conv.weight_g", ones(3)), CheckpointError, "conv.weight_g': found a name no rule knows"),
        (put(LAYER + "q_proj.bias", ones(16)), CheckpointError, "q_proj.bias': found a name no rule knows"),
        (put("text_emb.weight", ones(3)), CheckpointError, "a Moshi language model"),
        (drop(LAYER + "k_proj.weight"), CheckpointError, "k_proj.weight': found no such tensor"),
        (drop(LAYER + "q_proj.weight"), ModelContractError, "in_projs.0.weight"),
        (
            put(LAYER + "v_proj.weight", ones(8, 16)),
            CheckpointError,
            "v_proj.weight': shape: found [8, 16], expected the query",
        ),
        (put(LAYER + "k_proj.weight", ones(16)), CheckpointError, "k_proj.weight': shape: found [16]"),
        (put(LAYER + "q_proj.weight", ones(0, 16)), CheckpointError, "q_proj.weight': shape: found [0, 16]"),
        (put(LAYER + "v_proj.weight", np.ones((16, 16))), CheckpointError, "v_proj.weight': found F64"),
        (put("downsample.conv.weight", ones(16, 0, 4)), CheckpointError, "downsample.conv.weight': shape: found [16, 0, 4]"),
        (put("downsample.conv.weight", ones(16, 8, 4)), ModelContractError, "downsample"),
        (put("decoder.layers.2.conv.bias", np.full(32, np.inf, np.float32)), ModelContractError, "decoder.model.2.convtr"),
        (drop(BOOK + "cluster_usage"), CheckpointError, "layers.3.codebook.cluster_usage': found no such tensor"),
        (drop(BOOK + "embed_sum"), CheckpointError, "num_quantizers: found 32, expected 31"),
        (put(BOOK + "cluster_usage", ones(31)), CheckpointError, "cluster_usage': shape: found [31]"),
        (drop("encoder.layers.14.conv.bias"), ModelContractError, "encoder.model.14.conv.conv.bias"),
        (say(model_type="encodec"), CheckpointError, 'config.json: model_type: found "encodec", expected "mimi"'),
        (say(sampling_rate=16000), CheckpointError, "config.json: sampling_rate: found 16000, expected 24000"),
        (say(frame_rate=25), CheckpointError, "config.json: frame_rate"),
        (say(upsampling_ratios=[8, 6, 5, 2]), CheckpointError, "config.json: upsampling_ratios: found [8, 6, 5, 2]"),
        (say(use_causal_conv=1), CheckpointError, "config.json: use_causal_conv: found 1, expected true"),
        (say(pad_mode="reflect"), CheckpointError, "config.json: pad_mode"),
        (say(hidden_act="relu"), CheckpointError, "config.json: hidden_act"),
        (say(rope_scaling={"factor": 2}), CheckpointError, "config.json: rope_scaling"),
        (say(rope_parameters=7), CheckpointError, "config.json: rope_parameters: found 7"),
        (say(rope_parameters={"rope_type": "yarn"}), CheckpointError, "config.json: rope_parameters: rope_type"),
        (say(rope_theta=10000.5), CheckpointError, "config.json: rope_theta: found 10000.5"),
        (say(rope_theta=float("nan")), CheckpointError, "config.json: rope_theta: found NaN"),
        (say(rope_theta=1), ModelContractError, "max_period"),
        (say(sliding_window=None), CheckpointError, "config.json: sliding_window: found null"),
        (say(num_attention_heads=0), CheckpointError, "config.json: num_attention_heads: found 0"),
        (say(num_attention_heads=True), CheckpointError, "config.json: num_attention_heads: found true"),
        (say(num_attention_heads=2**32 - 1), CheckpointError, "config.json: num_key_value_heads"),
        (say(num_attention_heads=16, num_key_value_heads=16, head_dim=1), CheckpointError, "an even number of rows"),
        (say(num_key_value_heads=1), CheckpointError, "config.json: num_key_value_heads: found 1"),
        (say(head_dim=4), CheckpointError, "config.json: head_dim: found 4"),
        (say(num_quantizers=8), CheckpointError, "config.json: num_quantizers: found 8, expected 32"),
    ],
)
def test_what_is_no_mimi_of_transformers_is_refused(
    change: Change, error: type[CodecError], message: str, tiny_transformers: Path, tmp_path: Path
) -> None:
    source = rewritten(tiny_transformers, tmp_path / "x", change)
    with pytest.raises(error) as caught:
        convert_model(source, tmp_path / "x.gguf")
    assert message in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("text", [b"", b"[]", b"7", b"{", b"\xff", b"[" * 100_000, b'{"a":' * 100_000])
def test_a_config_that_is_no_config(text: bytes, tiny_transformers: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_transformers, tmp_path / "x")
    (tmp_path / "x" / "config.json").write_bytes(text)
    with pytest.raises(CheckpointError, match=r"config\.json"):
        convert_model(tmp_path / "x", tmp_path / "x.gguf")


def test_a_config_that_cannot_be_read(tiny_transformers: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_transformers, tmp_path / "x")
    config = tmp_path / "x" / "config.json"
    with config.open("ab") as file:
        file.truncate((1 << 20) + 1)
    with pytest.raises(CheckpointError, match="1048577 bytes, expected at most 1048576"):
        convert_model(tmp_path / "x", tmp_path / "x.gguf")
    config.unlink()
    with pytest.raises(CheckpointError, match=r"config\.json: found no such file"):
        convert_model(tmp_path / "x", tmp_path / "x.gguf")
    os.mkfifo(config)
    with pytest.raises(ModelAccessError, match="no regular file"):
        convert_model(tmp_path / "x", tmp_path / "x.gguf")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ((), "found no model.safetensors"),
        (("config.json", "pytorch_model.bin"), "found no model.safetensors"),
        (("config.json", "model.safetensors.index.json"), "weights in several files"),
    ],
)
def test_directories_without_the_weights(files: tuple[str, ...], message: str, tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    for name in files:
        (tmp_path / "x" / name).write_text("{}")
    with pytest.raises(CheckpointError, match=message):
        convert_model(tmp_path / "x", tmp_path / "x.gguf")


def test_a_truncated_checkpoint(tiny_transformers: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_transformers, tmp_path / "x")
    weights = tmp_path / "x" / "model.safetensors"
    whole = weights.read_bytes()
    for size in (0, 7, 8, 100, len(whole) // 2, len(whole) - 1):
        weights.write_bytes(whole[:size])
        with pytest.raises(CheckpointError):
            convert_model(tmp_path / "x", tmp_path / "x.gguf")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
