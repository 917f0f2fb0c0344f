"""Files of the synthetic language models in the enriched form, written by the public gguf package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from codec_core.synth_lm import LM_CONFIGS, lm_arrays

QUANTISED = {
    "f16": gguf.GGMLQuantizationType.F16,
    "bf16": gguf.GGMLQuantizationType.BF16,
    "q8_0": gguf.GGMLQuantizationType.Q8_0,
}


def lm_metadata(config: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a file, from what its checkpoint's config.json holds."""
    dim = config["dim"]
    names = ("card", "n_q", "dep_q", "text_card", "existing_text_padding_id", "dim", "num_layers", "num_heads", "context")
    names += ("max_period", "gating", "norm", "positional_embedding", "causal", "delays")
    metadata = {name: config[name] for name in names}
    metadata["dim_feedforward"] = int(config["hidden_scale"] * dim)
    for name in ("kv_repeat", "cross_attention", "demux_second_stream"):
        if name in config:
            metadata[name] = config[name]
    if config.get("extra_heads_num_heads"):
        metadata |= {"extra_heads.num_heads": config["extra_heads_num_heads"], "extra_heads.dim": config["extra_heads_dim"]}
    if config["dep_q"]:
        metadata |= {f"depformer.{name}": value for name, value in depformer_metadata(config).items()}
    if "conditioners" in config:
        metadata["conditioners"] = json.dumps(config["conditioners"])
        metadata["fuser.cross_attention_pos_emb_scale"] = float(config["fuser"]["cross_attention_pos_emb_scale"])
    return {f"moshi.lm.{name}": value for name, value in metadata.items()} | {"moshi.component": "lm"}


def depformer_metadata(config: Mapping[str, Any]) -> dict[str, Any]:
    renamed = {
        "dim": "depformer_dim",
        "num_heads": "depformer_num_heads",
        "num_layers": "depformer_num_layers",
        "gating": "depformer_gating",
        "pos_emb": "depformer_pos_emb",
        "multi_linear": "depformer_multi_linear",
        "weights_per_step": "depformer_weights_per_step",
        "weights_per_step_schedule": "depformer_weights_per_step_schedule",
        "low_rank_embeddings": "depformer_low_rank_embeddings",
        "kv_repeat": "depformer_kv_repeat",
        "norm": "depformer_norm",
        "context": "depformer_context",
        "max_period": "depformer_max_period",
    }
    metadata = {name: config[key] for name, key in renamed.items() if key in config}
    feed_forward = config["depformer_dim_feedforward"] or int(config["hidden_scale"] * config["depformer_dim"])
    return metadata | {"dim_feedforward": feed_forward}


def _put(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    else:
        writer.add_array(key, value)


def put_metadata(writer: gguf.GGUFWriter, metadata: Mapping[str, Any]) -> None:
    for key, value in metadata.items():
        _put(writer, key, value)


Typed = Mapping[str, tuple[gguf.GGMLQuantizationType, np.ndarray]]
"""Tensors by name: their type and values, or blocks as uint8 [rows, bytes]."""


def write_typed_lm(path: Path, tensors: Typed, metadata: Mapping[str, Any]) -> Path:
    """Write tensors (names without ``lm.``) and keys."""
    writer = gguf.GGUFWriter(path, "moshi")
    put_metadata(writer, metadata)
    for name, (kind, array) in tensors.items():
        values = np.ascontiguousarray(array.reshape(-1) if array.ndim == 3 else array)
        writer.add_tensor(f"lm.{name}", values, raw_dtype=kind if values.dtype == np.uint8 else None)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_lm(path: Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any], dtype: str = "f32") -> Path:
    """Write arrays as they are, but for matrices that take ``dtype``; vectors and conditioners stay float32."""

    def typed(name: str, array: np.ndarray) -> tuple[gguf.GGMLQuantizationType, np.ndarray]:
        if dtype in QUANTISED and array.ndim == 2 and "condition_provider" not in name:
            return QUANTISED[dtype], gguf.quants.quantize(np.ascontiguousarray(array), QUANTISED[dtype])
        return gguf.GGMLQuantizationType.F32, array

    return write_typed_lm(path, {name: typed(name, array) for name, array in arrays.items()}, metadata)


def write_lm_model(path: Path, model: str, *, split: bool = False, dtype: str = "f32") -> Path:
    """Write one of the five synthetic models."""
    return write_lm(path, lm_arrays(model, split=split), lm_metadata(LM_CONFIGS[model]), dtype)
