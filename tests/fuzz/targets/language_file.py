"""A language model's file, through reader, geometry, contract and packing, and some steps: as ``fuzz_language_file.cc``.

Input: the file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final

import gguf
import numpy as np

from codec_core import LanguageModel
from codec_core.errors import (
    ModelAccessError,
    ModelContractError,
    ModelFormatError,
    NumericOverflowError,
    UnavailableError,
)
from codec_core.language_session import GREEDY, Sampling
from tests.fuzz.language_materials import CONFIGS, language_arrays, language_file
from tests.fuzz.materials import folder, model_file, require_typed
from tests.lm_files import lm_metadata, write_typed_lm

COVERED: Final = ("ext/lm/geometry.cc", "ext/lm/language_model.cc", "ext/lm/stored_matrix_packer.cc", "ext/lm/tensors.cc")
DICTIONARY: Final = (
    b"GGUF\x03\x00\x00\x00",
    b"moshi.component",
    b"moshi.lm.",
    b"moshi.lm.dim",
    b"moshi.lm.num_heads",
    b"moshi.lm.kv_repeat",
    b"moshi.lm.context",
    b"moshi.lm.n_q",
    b"moshi.lm.dep_q",
    b"moshi.lm.card",
    b"moshi.lm.text_card",
    b"moshi.lm.text_card_out",
    b"moshi.lm.delays",
    b"moshi.lm.dim_feedforward",
    b"moshi.lm.inference.dep_q",
    b"moshi.lm.cross_attention",
    b"moshi.lm.demux_second_stream",
    b"moshi.lm.extra_heads.num_heads",
    b"moshi.lm.conditioners",
    b"moshi.lm.depformer.low_rank_embeddings",
    b"moshi.lm.depformer.weights_per_step_schedule",
    b"rope_concat",
    b"layer_norm",
    b"lm.transformer.layers.0.self_attn.in_proj_weight",
    b"lm.condition_provider.conditioners.",
    b".output_proj.weight",
    b".embed.weight",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x00\x00\xc0\x7f",
    b"\xff\xff\x7f\x7f",
)
REFUSALS: Final = (ModelAccessError, ModelFormatError, ModelContractError, UnavailableError)
RACING: Final = Sampling(text_temperature=0.7, text_top_k=0, temperature=0.7, top_k=0, seed=1)
STEPS: Final = 3


def one_input(data: bytes) -> None:
    path = folder() / "language.gguf"
    path.write_bytes(data)
    try:
        model = LanguageModel.open(path, threads=1)
    except REFUSALS as error:
        require_typed(error)
        return
    told = {one.name: np.zeros((1, one.width), np.float32) for one in model.info.conditioners if not one.label_count}
    try:
        sessions = [model.session(sampling, told) for sampling in (GREEDY, RACING)]
        for _ in range(STEPS):
            model.step_batch(sessions, np.zeros((2, model.info.user_levels), np.int32))
    except NumericOverflowError as error:
        require_typed(error)


Metadata = dict[str, Any]
Arrays = dict[str, np.ndarray]
F32: Final = gguf.GGMLQuantizationType.F32


def seeds() -> Iterator[bytes]:
    yield from (language_file(name).read_bytes() for name in CONFIGS)
    yield from (language_file("blocks", dtype).read_bytes() for dtype in ("F16", "BF16", "Q8_0", "Q4_0"))
    for name in ("plain", "told", "grouped"):
        yield from (changed(name, change) for change in KEYS)
        yield from (changed(name, change) for change in TENSORS)
    whole = language_file("plain").read_bytes()
    yield from (whole[:size] for size in (0, 24, 400, 1_500, len(whole) - 1))
    yield model_file().read_bytes()


def changed(name: str, change: Callable[[Metadata, Arrays], object]) -> bytes:
    """A model's file with one thing otherwise."""
    metadata, arrays = lm_metadata(CONFIGS[name]), dict(language_arrays(name))
    change(metadata, arrays)
    path = folder() / "changed.gguf"
    return write_typed_lm(path, {tensor: (F32, array) for tensor, array in arrays.items()}, metadata).read_bytes()


def _key(name: str, value: Any) -> Callable[[Metadata, Arrays], object]:
    return lambda metadata, _: metadata.update({name if "." in name else f"moshi.lm.{name}": value})


def _without(name: str) -> Callable[[Metadata, Arrays], object]:
    return lambda metadata, _: metadata.pop(f"moshi.lm.{name}", None)


def _tensor(name: str, array: np.ndarray | None) -> Callable[[Metadata, Arrays], object]:
    return lambda _, arrays: arrays.pop(name, None) if array is None else arrays.update({name: array})


def _fused(_: Metadata, arrays: Arrays) -> None:
    """Attention of all weight sets in one tensor, a gating that is numbered."""
    for stem, form in (("in_projs", "in_proj_weight"), ("out_projs", "out_proj.weight")):
        at = "depformer.layers.0.self_attn."
        sets = sorted(tensor for tensor in arrays if tensor.startswith(f"{at}{stem}."))
        arrays[at + form] = np.concatenate([arrays.pop(tensor) for tensor in sets])


def _whatever(name: str, value: float) -> Callable[[Metadata, Arrays], object]:
    """One tensor of nothing but a value."""

    def change(_: Metadata, arrays: Arrays) -> None:
        if name in arrays:
            arrays[name] = np.full_like(arrays[name], value)

    return change


KEYS: Final = (
    _key("moshi.component", "voice"),
    _key("general.architecture", "llama"),
    _key("split.count", 2),
    _key("dim", 1 << 15),
    _key("num_layers", 2),
    _key("num_heads", 3),
    _key("kv_repeat", 3),
    _key("context", 65_536),
    _key("gating", "gelu"),
    _key("causal", False),
    _key("norm", 4),
    _key("delays", [0, 1024, 3]),
    _key("delays", [1, 2]),
    _key("delays", [0.5] * 3),
    _key("dim_feedforward", 2),
    _key("text_card_out", 5),
    _key("existing_text_padding_id", 6),
    _key("cross_attention", True),
    _key("moshi.lm.extra_heads.num_heads", 1),
    _key("moshi.lm.inference.dep_q", 1),
    _key("moshi.lm.depformer.weights_per_step", False),
    _key("moshi.lm.depformer.multi_linear", False),
    _key("moshi.lm.depformer.weights_per_step_schedule", [0, 9]),
    _key("moshi.lm.depformer.low_rank_embeddings", 4),
    _key("moshi.lm.fuser.cross_attention_pos_emb_scale", math.nan),
    _key("conditioners", "[" * 5_000),
    _key("conditioners", '{"mood":{"type":"lut","lut":{"possible_values":["a"]}}}'),
    _key("conditioners", '{"mood":{"type":[]}}'),
    _without("dim"),
    _without("delays"),
)
TENSORS: Final = (
    _fused,
    _tensor("out_norm.alpha", None),
    _tensor("linears.0.weight", None),
    _tensor("emb.1.weight", np.zeros((4, 8), np.float32)),
    _tensor("text_linear.weight", np.full((6, 8), np.nan, np.float32)),
    _tensor("text_linear.weight", np.zeros((6, 8), np.int32)),
    _tensor("extra", np.zeros(3, np.float32)),
    _tensor("condition_provider.conditioners..output_proj.weight", np.zeros((8, 4), np.float32)),
    _tensor("condition_provider.conditioners.mood.embed.weight", np.zeros((1, 4), np.float32)),
    _tensor("transformer.layers.0.self_attn.in_proj.weight", np.zeros((24, 8), np.float32)),
    _whatever("text_linear.weight", 3e38),
    _whatever("extra_heads.0.weight", 3e38),
    _whatever("linears.0.weight", -3e38),
    _whatever("transformer.layers.0.cross_attention.in_proj_weight", 3e38),
    _whatever("transformer.layers.0.gating.0.linear_in.weight", 3e38),
    _whatever("condition_provider.conditioners.voice.output_proj.weight", 3e38),
    _whatever("condition_provider.conditioners.mood.learnt_padding", 3e38),
    _whatever("depformer.layers.0.self_attn.in_projs.0.weight", 3e38),
    _whatever("emb.0.weight", 3e38),
)
