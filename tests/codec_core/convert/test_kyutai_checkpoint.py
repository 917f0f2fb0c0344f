from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from codec_core import _ext
from codec_core.convert import convert_model, source_file
from codec_core.errors import CheckpointError, ModelContractError
from codec_core.safetensors_file import build_header

BOOK = "quantizer.rvq_first.vq.layers.0._codebook."
Reader = Callable[[Path], tuple[dict[str, Any], dict[str, Any]]]


def metadata_of(path: Path) -> dict[str, str]:
    with safe_open(path, "numpy") as file:
        return dict(file.metadata())


def rewritten(source: Path, destination: Path, change: Callable[[dict[str, np.ndarray], dict[str, Any]], None]) -> Path:
    """Write the checkpoint again after change(tensors, geometry)."""
    tensors, geometry = load_file(source), json.loads(metadata_of(source)["geometry"])
    change(tensors, geometry)
    save_file(tensors, destination, {"geometry": json.dumps(geometry)} if geometry else None)
    return destination


def test_codebooks_are_sums_over_clamped_usage(
    tiny_checkpoint: Path, tmp_path: Path, read_gguf: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_file, "PIECE_BYTES", 100)
    convert_model(tiny_checkpoint, tmp_path / "x.gguf")
    tensors = load_file(tiny_checkpoint)
    _, found = read_gguf(tmp_path / "x.gguf")
    for name, sums in tensors.items():
        if name.endswith("embedding_sum"):
            usage = tensors[name.replace("embedding_sum", "cluster_usage")]
            expected = sums / np.maximum(usage, np.float32(1e-5))[:, None]
            assert found["mimi." + name.removesuffix("_sum")].data.tobytes() == expected.tobytes()
    assert abs(found[f"mimi.{BOOK}embedding"].data[5]).max() < 1  # divided by 1e-5, not by its usage of 1e-7


def test_everything_else_is_copied_in_ggml_order(tiny_checkpoint: Path, tiny_gguf: Path, read_gguf: Reader) -> None:
    tensors = load_file(tiny_checkpoint)
    _, found = read_gguf(tiny_gguf)
    renamed = {"in_proj_weight": "in_projs.0.weight", "out_proj.weight": "out_projs.0.weight"}
    for name, array in tensors.items():
        if "_codebook" in name:
            continue
        ours = "mimi." + name
        for old, new in renamed.items():
            ours = ours.replace(f"self_attn.{old}", f"self_attn.{new}")
        tensor = found[ours]
        assert tensor.data.tobytes() == array.tobytes(), name
        dims = [int(size) for size in tensor.shape]
        expected = [1, *array.shape] if name.endswith(("conv.bias", "convtr.bias")) else [*reversed(array.shape)]
        while len(expected) > 1 and expected[-1] == 1 and not name.endswith("bias"):
            expected.pop()
        assert dims == expected, name


def test_geometry_of_the_header(tiny_gguf: Path, read_gguf: Reader) -> None:
    metadata, _ = read_gguf(tiny_gguf)
    assert metadata["general.name"] == "mimi-synth-tiny"
    assert metadata["moshi.mimi.transformer.num_heads"] == 2
    assert metadata["moshi.mimi.transformer.context"] == 8
    assert metadata["moshi.mimi.n_q"] == 32


def test_without_geometry_it_is_mimis(tiny_checkpoint: Path, tmp_path: Path, read_gguf: Reader) -> None:
    source = rewritten(tiny_checkpoint, tmp_path / "plain.safetensors", lambda _, geometry: geometry.clear())
    report = convert_model(source, tmp_path / "x.gguf")
    metadata, _ = read_gguf(tmp_path / "x.gguf")
    assert (report.default_levels, report.levels, report.name) == (8, 32, "plain")
    assert [metadata[f"moshi.mimi.transformer.{key}"] for key in ("num_heads", "context", "max_period")] == [8, 250, 10000]


def test_levels_are_capped_at_what_the_file_has(tiny_checkpoint: Path, tmp_path: Path) -> None:
    def three_levels(tensors: dict[str, np.ndarray], geometry: dict[str, Any]) -> None:
        geometry.clear()
        for name in [name for name in tensors if "rvq_rest.vq.layers." in name and name.split(".")[4] not in "01"]:
            del tensors[name]

    report = convert_model(rewritten(tiny_checkpoint, tmp_path / "x.safetensors", three_levels), tmp_path / "x.gguf")
    assert (report.default_levels, report.levels) == (3, 3)


@pytest.mark.parametrize("dtype", ["F16", "BF16"])
def test_half_precision_sources_widen_exactly(dtype: str, tiny_checkpoint: Path, tmp_path: Path, read_gguf: Reader) -> None:
    name = "encoder.model.0.conv.conv.weight"
    tensors = load_file(tiny_checkpoint)
    if dtype == "F16":
        tensors[name] = tensors[name].astype(np.float16)
        expected = tensors[name].astype(np.float32)
    else:
        tensors[name] = (tensors[name].view(np.uint32) >> 16).astype(np.uint16)
        expected = (tensors[name].astype(np.uint32) << 16).view(np.float32)
    types = {np.dtype(np.float32): "F32", np.dtype(np.float16): "F16", np.dtype(np.uint16): "BF16"}
    header = build_header(
        ((key, types[array.dtype], array.shape) for key, array in tensors.items()), metadata_of(tiny_checkpoint)
    )
    (tmp_path / "x.safetensors").write_bytes(header + b"".join(array.tobytes() for array in tensors.values()))
    convert_model(tmp_path / "x.safetensors", tmp_path / "x.gguf")
    _, found = read_gguf(tmp_path / "x.gguf")
    assert found["mimi." + name].data.tobytes() == expected.tobytes()


def drop(name: str) -> Callable[[dict[str, np.ndarray], dict[str, Any]], None]:
    return lambda tensors, _: tensors.__delitem__(name)


def put(name: str, array: np.ndarray) -> Callable[[dict[str, np.ndarray], dict[str, Any]], None]:
    return lambda tensors, _: tensors.update({name: array})


def geometry(part: str, **values: Any) -> Callable[[dict[str, np.ndarray], dict[str, Any]], None]:
    return lambda _, fields: fields[part].update(values)


LAYER = "encoder_transformer.transformer.layers.0."


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (put("extra.weight", np.ones(3, np.float32)), CheckpointError, "tensor 'extra.weight': found a name no rule knows"),
        (put("encoder.layers.0.conv.weight", np.ones(3, np.float32)), CheckpointError, "config.json: found no such file"),
        (put("lm.text_emb.weight", np.ones(3, np.float32)), CheckpointError, "a Moshi language model"),
        (put(LAYER + "norm1.weight", np.ones(16, np.float64)), CheckpointError, "norm1.weight': found F64"),
        (put(LAYER + "norm1.weight", np.ones((16, 0), np.float32)), CheckpointError, "norm1.weight': shape: found [16, 0]"),
        (drop(BOOK + "cluster_usage"), CheckpointError, "cluster_usage': found no such tensor"),
        (put(BOOK + "cluster_usage", np.ones(31, np.float32)), CheckpointError, "cluster_usage': shape: found [31]"),
        (
            put(BOOK + "embedding_sum", np.ones(256, np.float32)),
            CheckpointError,
            "shape: found [32], expected [entries] of [256]",
        ),
        (geometry("transformer", num_heads="2"), CheckpointError, "geometry: num_heads: found '2'"),
        (geometry("transformer", context=0), CheckpointError, "geometry: context: found 0"),
        (geometry("transformer", max_period=True), CheckpointError, "geometry: max_period: found True"),
        (geometry("quantizer", n_q=2**40), CheckpointError, "geometry: n_q"),
        (lambda _, fields: fields.update(quantizer=3), CheckpointError, "geometry: quantizer: found int"),
        (lambda _, fields: fields.update(frame_rate=25), CheckpointError, "geometry: sample_rate, frame_rate"),
        (lambda _, fields: fields.update(model=""), CheckpointError, "geometry: model"),
        (geometry("transformer", num_heads=3), ModelContractError, "num_heads"),
        (drop(LAYER + "norm1.bias"), ModelContractError, "norm1.bias"),
        (drop(LAYER + "norm1.weight"), CheckpointError, "norm1.weight': found no such tensor"),
        (put(LAYER + "norm1.bias", np.full(16, np.nan, np.float32)), ModelContractError, "norm1.bias"),
        (put(LAYER + "norm1.bias", np.ones(17, np.float32)), ModelContractError, "norm1.bias"),
        (put(BOOK + "cluster_usage", np.full(32, np.nan, np.float32)), ModelContractError, "embedding"),
    ],
)
def test_what_is_no_kyutai_checkpoint_is_refused(
    change: Any, error: type[Exception], message: str, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    source = rewritten(tiny_checkpoint, tmp_path / "x.safetensors", change)
    with pytest.raises(error) as caught:
        convert_model(source, tmp_path / "x.gguf")
    assert message in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["x.safetensors"]


def test_geometry_that_is_no_json(tiny_checkpoint: Path, tmp_path: Path) -> None:
    for text in ("{", "[" * 100_000, "7"):
        save_file(load_file(tiny_checkpoint), tmp_path / "x.safetensors", {"geometry": text})
        with pytest.raises(CheckpointError, match="geometry"):
            convert_model(tmp_path / "x.safetensors", tmp_path / "x.gguf")


def test_the_engine_lists_exactly_what_was_written(tiny_gguf: Path, read_gguf: Reader) -> None:
    _, found = read_gguf(tiny_gguf)
    assert sorted(found) == sorted(tensor["name"] for tensor in _ext.inspect_model(str(tiny_gguf))["tensors"])
