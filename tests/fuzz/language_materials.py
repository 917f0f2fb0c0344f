"""What the fuzz targets of language models begin with: the smallest models that have every part, made once for each process."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import gguf
import numpy as np

from codec_core import LanguageModel
from codec_core.synth_lm import gating_width
from tests.fuzz.materials import folder
from tests.lm_files import lm_metadata, write_typed_lm

Config = dict[str, Any]
Shapes = Iterator[tuple[str, tuple[int, ...]]]
F32: Final = gguf.GGMLQuantizationType.F32
_COMMON: Final[Config] = {
    "card": 4,
    "text_card": 6,
    "existing_text_padding_id": 3,
    "dim": 8,
    "num_heads": 2,
    "num_layers": 1,
    "hidden_scale": 2.0,
    "causal": True,
    "context": 3,
    "max_period": 10000,
    "gating": "silu",
    "norm": "rms_norm_f32",
    "positional_embedding": "rope",
    "depformer_dim": 4,
    "depformer_dim_feedforward": 8,
    "depformer_num_heads": 2,
    "depformer_num_layers": 1,
    "depformer_multi_linear": True,
    "depformer_gating": "silu",
    "depformer_pos_emb": "none",
    "depformer_weights_per_step": True,
}
CONFIGS: Final[dict[str, Config]] = {
    "plain": {**_COMMON, "n_q": 2, "dep_q": 1, "delays": [0, 0, 1]},
    "told": {
        **_COMMON,
        "n_q": 2,
        "dep_q": 2,
        "delays": [0, 0, 2],
        "depformer_weights_per_step_schedule": [0, 0],
        "depformer_low_rank_embeddings": 2,
        "demux_second_stream": True,
        "cross_attention": True,
        "conditioners": {
            "voice": {"type": "tensor", "tensor": {"dim": 4}},
            "mood": {"type": "lut", "lut": {"dim": 4, "n_bins": 2, "tokenizer": "noop", "possible_values": ["a", "b"]}},
        },
        "fuser": {"cross_attention_pos_emb": True, "cross_attention_pos_emb_scale": 1, "sum": ["mood"], "cross": ["voice"]},
    },
    "grouped": {
        **_COMMON,
        "n_q": 2,
        "dep_q": 2,
        "delays": [0, 1, 1],
        "kv_repeat": 2,
        "depformer_kv_repeat": 1,
        "positional_embedding": "rope_concat",
        "depformer_norm": "layer_norm",
        "extra_heads_num_heads": 2,
        "extra_heads_dim": 3,
    },
    "blocks": {
        **_COMMON,
        "n_q": 1,
        "dep_q": 0,
        "dim": 32,
        "hidden_scale": 1.5,
        "delays": [0, 1],
        "extra_heads_num_heads": 1,
        "extra_heads_dim": 2,
    },
}
"""In miniature: moshiko; two muxed text streams, conditions, shared and low-rank weights; grouped heads, norms and extra heads;
whole blocks of 32 for quantised matrices."""


def _layer(path: str, widths: tuple[int, int, int], sets: int) -> Shapes:
    dim, rows, gating = widths
    yield from ((f"{path}norm{index}.alpha", (1, 1, dim)) for index in (1, 2))
    for index in range(sets):
        yield f"{path}self_attn.in_projs.{index}.weight", (rows, dim)
        yield f"{path}self_attn.out_projs.{index}.weight", (dim, dim)
        yield f"{path}gating.{index}.linear_in.weight", (2 * gating, dim)
        yield f"{path}gating.{index}.linear_out.weight", (dim, gating)


def _temporal(config: Config) -> Shapes:
    dim, path = config["dim"], "transformer.layers.0."
    yield from ((f"emb.{level}.weight", (config["card"] + 1, dim)) for level in range(config["n_q"]))
    yield "text_emb.weight", (config["text_card"] + 1, dim)
    yield "out_norm.alpha", (1, 1, dim)
    yield "text_linear.weight", (config["text_card"], dim)
    rows = dim + 2 * dim // config.get("kv_repeat", 1)
    yield from _layer(path, (dim, rows, gating_width(dim, int(config["hidden_scale"] * dim))), 1)
    yield from (
        (f"extra_heads.{head}.weight", (config["extra_heads_dim"], dim))
        for head in range(config.get("extra_heads_num_heads", 0))
    )
    if not config.get("cross_attention"):
        return
    yield from ((f"text_emb.{out}.weight", (dim, dim)) for out in ("out1", "out2"))
    yield from ((f"{path}norm_cross.{part}", (dim,)) for part in ("weight", "bias"))
    yield f"{path}cross_attention.in_proj_weight", (3 * dim, dim)
    yield f"{path}cross_attention.out_proj.weight", (dim, dim)
    for name, conditioner in config["conditioners"].items():
        sizes = conditioner[conditioner["type"]]
        at = f"condition_provider.conditioners.{name}."
        if "n_bins" in sizes:
            yield at + "embed.weight", (sizes["n_bins"] + 1, sizes["dim"])
        yield at + "output_proj.weight", (dim, sizes["dim"])
        yield at + "learnt_padding", (1, 1, dim)


def _depformer(config: Config) -> Shapes:
    dim, levels = config["depformer_dim"], config["dep_q"]
    sets = max(config.get("depformer_weights_per_step_schedule") or range(levels)) + 1
    rank = config.get("depformer_low_rank_embeddings")
    yield from ((f"depformer_in.{index}.weight", (dim, config["dim"])) for index in range(sets))
    yield from _layer("depformer.layers.0.", (dim, 3 * dim, gating_width(dim, config["depformer_dim_feedforward"])), sets)
    yield "depformer_text_emb.weight", (config["text_card"] + 1, rank or dim)
    if config.get("demux_second_stream"):
        yield from ((f"depformer_text_emb.{out}.weight", (dim, rank or dim)) for out in ("out1", "out2"))
    for level in range(levels - 1):
        yield f"depformer_emb.{level}.weight", (config["card"] + 1, rank or dim)
        if rank:
            yield f"depformer_emb.{level}.low_rank.weight", (dim, rank)
    for level in range(levels):
        yield f"linears.{level}.weight", (config["card"], dim)
        if config.get("depformer_norm"):
            yield from ((f"depformer_norms.{level}.{part}", (dim,)) for part in ("weight", "bias"))


@functools.cache
def language_arrays(name: str) -> dict[str, np.ndarray]:
    """A model's tensors, without ``lm.``."""
    config, rng = CONFIGS[name], np.random.default_rng(len(name))
    shapes = dict([*_temporal(config), *(_depformer(config) if config["dep_q"] else ())])
    return {tensor: rng.uniform(-0.5, 0.5, shape).astype(np.float32) for tensor, shape in shapes.items()}


@functools.cache
def language_file(name: str, dtype: str = "F32") -> Path:
    """A model's file; matrices of whole blocks are of ``dtype``, a name of ggml's."""
    kind = gguf.GGMLQuantizationType[dtype]
    tensors = {}
    for tensor, array in language_arrays(name).items():
        takes = kind != F32 and array.ndim == 2 and array.shape[1] % 32 == 0
        tensors[tensor] = (kind, gguf.quants.quantize(array, kind)) if takes else (F32, array)
    return write_typed_lm(folder() / f"{name}-{dtype}.gguf", tensors, lm_metadata(CONFIGS[name]))


@functools.cache
def language_model(name: str) -> LanguageModel:
    return LanguageModel.open(language_file(name), threads=1)
