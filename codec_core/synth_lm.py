"""Deterministic small language models in the form Kyutai publishes: for tests and golden vectors.

Five models show between them all that the engine knows of the family: ``a`` is moshiko in miniature, ``b`` has a schedule of
weight sets, low-rank embeddings and extra heads, ``s`` recognises speech (no depformer), ``c`` speaks (two muxed text streams,
cross attention, conditions), ``h`` has grouped heads, half-split rotary pairs and layer norms before the audio heads. Values
are those of :mod:`codec_core.synth_tensors` under the name ``lm-MODEL/TENSOR``; nothing was trained.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from codec_core.synth_tensors import Float32Array, SynthTensor, uniform

Config = dict[str, Any]
"""What a checkpoint's ``config.json`` holds."""

_COMMON: Final[Config] = {
    "card": 64,
    "text_card": 96,
    "existing_text_padding_id": 3,
    "dim": 128,
    "num_heads": 4,
    "num_layers": 4,
    "hidden_scale": 4.125,
    "causal": True,
    "layer_scale": None,
    "context": 24,
    "max_period": 10000,
    "gating": "silu",
    "norm": "rms_norm_f32",
    "positional_embedding": "rope",
    "depformer_dim": 64,
    "depformer_dim_feedforward": 288,
    "depformer_num_heads": 4,
    "depformer_num_layers": 2,
    "depformer_layer_scale": None,
    "depformer_multi_linear": True,
    "depformer_max_period": 10000,
    "depformer_gating": "silu",
    "depformer_pos_emb": "none",
    "depformer_weights_per_step": True,
}
_CONDITIONS: Final[Config] = {
    "conditioners": {
        "speaker_wavs": {"type": "tensor", "tensor": {"dim": 32}},
        "control": {"type": "lut", "lut": {"dim": 32, "n_bins": 1, "tokenizer": "noop", "possible_values": ["ok"]}},
        "cfg": {
            "type": "lut",
            "lut": {"dim": 16, "n_bins": 3, "tokenizer": "noop", "possible_values": ["1.0", "1.5", "2.0"]},
        },
    },
    "fuser": {
        "cross_attention_pos_emb": True,
        "cross_attention_pos_emb_scale": 1,
        "sum": ["control", "cfg"],
        "prepend": [],
        "cross": ["speaker_wavs"],
    },
}
LM_CONFIGS: Final[dict[str, Config]] = {
    "a": {**_COMMON, "n_q": 8, "dep_q": 4, "depformer_context": 4, "delays": [0, 0, 1, 1, 1, 0, 1, 1, 1]},
    "b": {
        **_COMMON,
        "n_q": 8,
        "dep_q": 4,
        "delays": [0, 0, 2, 2, 2, 0, 2, 2, 2],
        "depformer_weights_per_step_schedule": [0, 1, 2, 2],
        "depformer_low_rank_embeddings": 32,
        "extra_heads_num_heads": 2,
        "extra_heads_dim": 6,
    },
    "s": {**_COMMON, "n_q": 8, "dep_q": 0, "delays": [0] * 9, "extra_heads_num_heads": 4, "extra_heads_dim": 6},
    "c": {
        **_COMMON,
        "n_q": 8,
        "dep_q": 8,
        "delays": [0, 0, 2, 2, 2, 2, 2, 2, 2],
        "depformer_weights_per_step_schedule": [0, 1, 2, 3, 3, 3, 3, 3],
        "depformer_low_rank_embeddings": 32,
        "demux_second_stream": True,
        "cross_attention": True,
        **_CONDITIONS,
    },
    "h": {
        **_COMMON,
        "n_q": 8,
        "dep_q": 4,
        "delays": [0, 0, 2, 2, 2, 0, 2, 2, 2],
        "kv_repeat": 2,
        "depformer_kv_repeat": 1,
        "positional_embedding": "rope_concat",
        "depformer_norm": "layer_norm",
        "depformer_dim_feedforward": None,
    },
}
"""The models' ``config.json`` by name."""

# sqrt(3 / inputs) / 1, that is a deviation of one from inputs of deviation one; as decimals, so that no root is taken.
_BOUND: Final = {
    128: 0.15309311,
    352: 0.09231862,
    64: 0.21650635,
    192: 0.125,
    176: 0.13055824,
    32: 0.30618622,
    16: 0.43301270,
}
_ATTENTION_GAIN: Final = np.float32(1.5)
"""Query and key rows are half as large again, which sharpens the attention."""


def gating_width(dim: int, feed_forward: int) -> int:
    """Return the width between the two matrices of a gated unit, as published: 2/3 of the nominal, 21/8 of 4 x ``dim``."""
    return 21 * dim // 8 if feed_forward == 4 * dim else 2 * feed_forward // 3


@dataclass(frozen=True)
class _Layer:
    """A transformer layer to be: its place in the file, widths, and how many weight sets it has (None: one, unnumbered)."""

    path: str
    dim: int
    key_dim: int
    gating: int
    sets: int | None = None


def _bound(inputs: int) -> float:
    return _BOUND[inputs] if inputs in _BOUND else round(math.sqrt(3 / inputs), 8)


class _Plan:
    def __init__(self, model: str, config: Config) -> None:
        self.model = model
        self.config = config
        self.tensors: dict[str, SynthTensor] = {}

    def put(self, name: str, shape: tuple[int, ...], bound: float, offset: float = 0.0) -> None:
        self.tensors[name] = uniform(f"lm-{self.model}/{name}", shape, bound, offset)

    def put_attention_input(self, layer: _Layer) -> None:
        name = layer.path + "self_attn.in_proj_weight"
        rows = layer.dim + 2 * layer.key_dim
        plain = uniform(f"lm-{self.model}/{name}", ((layer.sets or 1) * rows, layer.dim), _bound(layer.dim))
        sharpened = layer.dim + layer.key_dim

        def values(start: int, count: int) -> Float32Array:
            drawn = plain.values(start, count)
            row = np.arange(start, start + count) // layer.dim % rows
            drawn[row < sharpened] *= _ATTENTION_GAIN
            return drawn

        self.tensors[name] = SynthTensor(plain.shape, values)

    def put_layer(self, layer: _Layer) -> None:
        dim, path = layer.dim, layer.path
        self.put_attention_input(layer)
        self.put(path + "self_attn.out_proj.weight", ((layer.sets or 1) * dim, dim), 1.5 * _bound(dim))
        for index in [None] if layer.sets is None else range(layer.sets):
            gating = f"{path}gating." if index is None else f"{path}gating.{index}."
            self.put(gating + "linear_in.weight", (2 * layer.gating, dim), 1.25 * _bound(dim))
            self.put(gating + "linear_out.weight", (dim, layer.gating), 1.25 * _bound(layer.gating))
        for norm in ("norm1", "norm2"):
            self.put(f"{path}{norm}.alpha", (1, 1, dim), 0.25, 1.0)

    def put_cross_attention(self, path: str) -> None:
        dim = self.config["dim"]
        self.put(path + "norm_cross.weight", (dim,), 0.25, 1.0)
        self.put(path + "norm_cross.bias", (dim,), 0.1)
        self.put(path + "cross_attention.in_proj_weight", (3 * dim, dim), 1.25 * _bound(dim))
        self.put(path + "cross_attention.out_proj.weight", (dim, dim), 1.5 * _bound(dim))

    def put_temporal(self) -> None:
        config, dim = self.config, self.config["dim"]
        for level in range(config["n_q"]):
            # Small, so that the norm's epsilon can be seen.
            self.put(f"emb.{level}.weight", (config["card"] + 1, dim), 0.035)
        self.put("text_emb.weight", (config["text_card"] + 1, dim), 0.035)
        if config.get("demux_second_stream"):
            self.put("text_emb.out1.weight", (dim, dim), _bound(dim))
            self.put("text_emb.out2.weight", (dim, dim), _bound(dim))
        self.put("text_linear.weight", (config["text_card"], dim), 2.0 * _bound(dim))
        self.put("out_norm.alpha", (1, 1, dim), 0.25, 1.0)
        gating = gating_width(dim, int(config["hidden_scale"] * dim))
        for index in range(config["num_layers"]):
            path = f"transformer.layers.{index}."
            self.put_layer(_Layer(path, dim, dim // config.get("kv_repeat", 1), gating))
            if config.get("cross_attention"):
                self.put_cross_attention(path)
        for head in range(config.get("extra_heads_num_heads", 0)):
            self.put(f"extra_heads.{head}.weight", (config["extra_heads_dim"], dim), _bound(dim))

    def put_depformer(self) -> None:
        config, dim, levels = self.config, self.config["depformer_dim"], self.config["dep_q"]
        sets = max(config.get("depformer_weights_per_step_schedule") or range(levels)) + 1
        for index in range(sets):
            self.put(f"depformer_in.{index}.weight", (dim, config["dim"]), 0.5 * _bound(config["dim"]))
        self.put_depformer_embeddings()
        gating = gating_width(dim, config["depformer_dim_feedforward"] or int(config["hidden_scale"] * dim))
        for index in range(config["depformer_num_layers"]):
            self.put_layer(_Layer(f"depformer.layers.{index}.", dim, dim, gating, sets))
        for level in range(levels):
            self.put(f"linears.{level}.weight", (config["card"], dim), 1.5 * _bound(dim))
            if config.get("depformer_norm") == "layer_norm":
                self.put(f"depformer_norms.{level}.weight", (dim,), 0.25, 1.0)
                self.put(f"depformer_norms.{level}.bias", (dim,), 0.1)

    def put_depformer_embeddings(self) -> None:
        config, dim = self.config, self.config["depformer_dim"]
        rank = config.get("depformer_low_rank_embeddings")
        names = [f"depformer_emb.{level}" for level in range(config["dep_q"] - 1)]
        for name in [*names, "depformer_text_emb"]:
            rows = config["text_card" if name == "depformer_text_emb" else "card"] + 1
            self.put(f"{name}.weight", (rows, rank or dim), 1.0)
            if rank:
                self.put(f"{name}.low_rank.weight", (dim, rank), _bound(rank))
        if config.get("demux_second_stream"):
            for out in ("out1", "out2"):
                self.put(f"depformer_text_emb.{out}.weight", (dim, rank or dim), _bound(rank or dim))

    def put_conditions(self) -> None:
        dim = self.config["dim"]
        for name, conditioner in self.config.get("conditioners", {}).items():
            path = f"condition_provider.conditioners.{name}."
            sizes = conditioner[conditioner["type"]]
            if "n_bins" in sizes:
                self.put(path + "embed.weight", (sizes["n_bins"] + 1, sizes["dim"]), 1.0)
            gain = 0.1 if "n_bins" in sizes else 1.0
            self.put(path + "output_proj.weight", (dim, sizes["dim"]), gain * _bound(sizes["dim"]))
            self.put(path + "learnt_padding", (1, 1, dim), 0.35)


def plan_lm_tensors(model: str, config: Config | None = None) -> dict[str, SynthTensor]:
    """List every tensor by its published name, attention fused over weight sets.

    Args:
        model: what the values are drawn by.
        config: None: that of :data:`LM_CONFIGS` with this name.

    """
    plan = _Plan(model, LM_CONFIGS[model] if config is None else config)
    plan.put_temporal()
    if plan.config["dep_q"]:
        plan.put_depformer()
    plan.put_conditions()
    return plan.tensors


def lm_arrays(model: str, *, split: bool = False) -> dict[str, Float32Array]:
    """Return a model's tensors as arrays; ``split`` gives each weight set of an attention a tensor of its own."""
    arrays = {name: tensor.values(0, tensor.elements).reshape(tensor.shape) for name, tensor in plan_lm_tensors(model).items()}
    return split_attention(arrays) if split else arrays


def split_attention(arrays: dict[str, Float32Array]) -> dict[str, Float32Array]:
    """Return the tensors with each fused attention matrix cut into those of its weight sets, whose rows are neighbours."""
    split: dict[str, Float32Array] = {}
    for name, array in arrays.items():
        for fused, stem in (("in_proj_weight", "in_projs"), ("out_proj.weight", "out_projs")):
            if name.endswith("." + fused):
                dim = array.shape[1]
                sets = max(1, len(array) // (3 * dim if stem == "in_projs" else dim))
                at = name.removesuffix(fused)
                split |= {f"{at}{stem}.{index}.weight": part for index, part in enumerate(np.split(array, sets))}
                break
        else:
            split[name] = array
    return split
