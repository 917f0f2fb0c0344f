"""A language model's configuration as the metadata of its file."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

import numpy as np

from codec_core.convert.gguf_writer import Metadata
from codec_core.convert.lm_config import LmConfig, refusal

PREFIX: Final = "moshi.lm."
_PERSONAPLEX: Final = "personaplex"
_PROMPT_SILENCE_FRAMES: Final = 6
"""Half a second of silence stands before and behind PersonaPlex's text prompt."""
_TEMPORAL: Final = (
    "card",
    "n_q",
    "dep_q",
    "text_card",
    "text_card_out",
    "existing_text_padding_id",
    "existing_text_end_padding_id",
    "dim",
    "num_layers",
    "num_heads",
    "kv_repeat",
    "context",
    "max_period",
    "dim_feedforward",
    "gating",
    "norm",
    "positional_embedding",
    "causal",
    "cross_attention",
    "demux_second_stream",
)
_DEPFORMER: Final = (
    "dim",
    "num_heads",
    "num_layers",
    "kv_repeat",
    "dim_feedforward",
    "context",
    "max_period",
    "gating",
    "pos_emb",
    "norm",
    "multi_linear",
    "weights_per_step",
)
_GENERATION: Final[dict[str, type]] = {"use_sampling": bool, "temp": float, "temp_text": float, "top_k": int, "top_k_text": int}
"""Keys of ``lm_gen_config`` with the types their values are stored as."""
_UNUSED_GENERATION: Final = "text_temp"
"""Published once, and taken by nobody."""
_CONDITIONER_KEYS: Final = {
    "lut": {"dim", "n_bins", "tokenizer", "possible_values", "init_scale"},
    "tensor": {"dim"},
}
_CONDITIONER_FIXED: Final[dict[str, Any]] = {
    "tokenizer": "noop",
    "force_linear": True,
    "pad_empty": True,
    "output_bias": False,
    "learn_padding": True,
}


def config_metadata(config: LmConfig) -> Metadata:
    """Return the keys ``moshi.lm.*`` of a configuration; a value that is null leaves its key out.

    Raises:
        CheckpointError: conditions, or settings of generation, that are not known.

    """
    pairs: list[tuple[str, Any]] = [(key, config[key]) for key in _TEMPORAL]
    pairs += [("delays", np.array(config["delays"], np.uint32))]
    pairs += [("extra_heads.num_heads", config["extra_heads_num_heads"]), ("extra_heads.dim", config["extra_heads_dim"])]
    if config["dep_q"]:
        pairs += [(f"depformer.{key}", config[f"depformer_{key}"]) for key in _DEPFORMER]
        pairs += [("depformer.low_rank_embeddings", config["depformer_low_rank_embeddings"])]
        if config["depformer_weights_per_step"]:
            pairs += [("depformer.weights_per_step_schedule", np.array(weight_schedule(config), np.uint32))]
    pairs += [("model_type", config["model_type"]), *_inference(config), *_conditions(config), *_generation(config)]
    for part in ("stt", "tts"):
        pairs += [(f"{part}.{key}", value) for key, value in _scalars(config, f"{part}_config")]
    pairs += [(f"model_id.{key}", value) for key, value in _scalars(config, "model_id")]
    return [(PREFIX + key, value) for key, value in pairs if value is not None]


def weight_schedule(config: LmConfig) -> list[int]:
    """Return which of its weight sets the depformer uses for each codebook."""
    schedule: list[int] | None = config["depformer_weights_per_step_schedule"]
    return list(range(config["dep_q"])) if schedule is None else schedule


def _inference(config: LmConfig) -> list[tuple[str, Any]]:
    """Return what PersonaPlex does besides: its depformer has the user's codebooks too, half of all."""
    if config["model_type"] != _PERSONAPLEX:
        return []
    silence = [(f"inference.{side}_text_silence_frames", _PROMPT_SILENCE_FRAMES) for side in ("pre", "post")]
    return [("inference.dep_q", config["n_q"] // 2), *silence]


def _conditions(config: LmConfig) -> list[tuple[str, Any]]:
    conditioners, fuser = config["conditioners"], config["fuser"]
    known = {"sum", "cross", "prepend", "cross_attention_pos_emb", "cross_attention_pos_emb_scale"}
    for key in fuser:
        if key not in known:
            raise refusal(f"fuser: {key}", fuser[key], f"no such key; those known are {', '.join(sorted(known))}")
    if fuser.get("prepend"):
        raise refusal("fuser: prepend", fuser["prepend"], "[]: conditions are summed or crossed")
    kinds = {name: _checked_conditioner(name, conditioner) for name, conditioner in sorted(conditioners.items())}
    for how, kind in (("sum", "lut"), ("cross", "tensor")):
        expected = sorted(name for name, found in kinds.items() if found == kind)
        if sorted(map(str, fuser.get(how) or [])) != expected:
            raise refusal(f"fuser: {how}", fuser.get(how), f"{json.dumps(expected)}, the conditioners of type {kind}")
    if not conditioners:
        return []
    pairs: list[tuple[str, Any]] = [("conditioners", json.dumps(conditioners, separators=(",", ":"), sort_keys=True))]
    if fuser.get("cross_attention_pos_emb"):
        scale = _number(fuser.get("cross_attention_pos_emb_scale", 1.0), "fuser: cross_attention_pos_emb_scale")
        pairs.append(("fuser.cross_attention_pos_emb_scale", scale))
    return pairs


def _checked_conditioner(name: str, conditioner: Any) -> str:
    """Return the type of a conditioner whose every key is known."""
    subject = f"conditioners: {name[:80]}"
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        raise refusal("conditioners", name, "names of letters, digits, - and _")
    kind = conditioner.get("type") if isinstance(conditioner, dict) else None
    if kind not in _CONDITIONER_KEYS:
        raise refusal(f"{subject}: type", kind, '"lut" or "tensor"')
    settings = conditioner.get(kind)
    if not isinstance(settings, dict) or set(conditioner) != {"type", kind}:
        raise refusal(subject, sorted(conditioner), f'"type" and "{kind}"')
    for key, value in settings.items():
        if key in _CONDITIONER_FIXED and value != _CONDITIONER_FIXED[key]:
            raise refusal(f"{subject}: {key}", value, json.dumps(_CONDITIONER_FIXED[key]))
        if key not in _CONDITIONER_KEYS[kind] | _CONDITIONER_FIXED.keys():
            raise refusal(f"{subject}: {key}", value, "no such key")
    return str(kind)


def _generation(config: LmConfig) -> list[tuple[str, Any]]:
    pairs: list[tuple[str, Any]] = []
    for key, value in config["lm_gen_config"].items():
        subject, kind = f"lm_gen_config: {key[:80]}", _GENERATION.get(key)
        if key == _UNUSED_GENERATION:
            continue
        if kind is None:
            raise refusal(subject, value, f"no such key; those known are {', '.join(_GENERATION)}")
        if kind is float:
            pairs.append((f"generation.{key}", _number(value, subject)))
            continue
        is_of_kind = type(value) is kind
        if not is_of_kind or not 0 <= value < 1 << 31:
            raise refusal(subject, value, "true or false" if kind is bool else "a whole number of 0 or more")
        pairs.append((f"generation.{key}", value))
    return pairs


def _scalars(config: LmConfig, part: str) -> list[tuple[str, Any]]:
    """Return the entries of an object of single values, in order of their keys."""
    pairs = []
    for key, value in sorted(config[part].items()):
        is_number = isinstance(value, int | float) and math.isfinite(value) and abs(value) < 1 << 31
        if not re.fullmatch(r"[A-Za-z0-9_]{1,64}", key) or not (value is None or isinstance(value, str) or is_number):
            raise refusal(f"{part}: {key[:80]}", value, "a string, a number, true or false")
        pairs.append((key, value))
    return pairs


def _number(value: Any, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise refusal(key, value, "a number")
    return float(value)
