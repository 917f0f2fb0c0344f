"""The ``config.json`` beside a language model's checkpoint: every key known by name, or an error that names it.

Where a key is missing, what counts is what the constructor of Kyutai's ``LMModel`` takes for it, even where no published model
could be run with that: a norm with a mean, absolute positions, no gating. Whoever reads the converted file refuses those by
name.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from codec_core.convert.source_file import SourceFile
from codec_core.errors import CheckpointError
from codec_core.safetensors_file import shown

CONFIG_NAME: Final = "config.json"
CONFIG_CAP_BYTES: Final = 1 << 20
"""Longest file that is read. Published ones have 2 KB."""
MOSHI_7B: Final = "moshi-7b"
"""Names the configuration of moshiko and moshika, which were published without one."""

_COUNTS: Final[dict[str, int | None]] = {
    "n_q": 8,
    "dep_q": 8,
    "card": 1024,
    "text_card": 32000,
    "text_card_out": None,
    "dim": 128,
    "num_heads": 8,
    "num_layers": None,
    "kv_repeat": 1,
    "context": None,
    "max_period": 10000,
    "existing_text_padding_id": 3,
    "existing_text_end_padding_id": 0,
    "extra_heads_num_heads": 0,
    "extra_heads_dim": 6,
    "depformer_dim": 256,
    "depformer_num_heads": None,
    "depformer_num_layers": None,
    "depformer_kv_repeat": None,
    "depformer_dim_feedforward": None,
    "depformer_context": None,
    "depformer_max_period": None,
    "depformer_low_rank_embeddings": None,
}
"""Whole numbers, with the constructor's defaults; None: none, or what another key says."""
_MAY_BE_ZERO: Final = frozenset(
    {"dep_q", "existing_text_padding_id", "existing_text_end_padding_id", "extra_heads_num_heads", "extra_heads_dim"}
)
_WORDS: Final[dict[str, str | None]] = {
    "gating": "none",
    "norm": "layer_norm",
    "positional_embedding": "sin",
    "depformer_gating": None,
    "depformer_pos_emb": "sin",
    "depformer_norm": None,
    "model_type": "moshi",
    "tokenizer_name": "tokenizer_spm_32k_3.model",
}
_FLAGS: Final = {
    "causal": True,
    "cross_attention": False,
    "demux_second_stream": False,
    "depformer_multi_linear": False,
    "depformer_weights_per_step": False,
}
_FIXED: Final[dict[str, Any]] = {
    "layer_scale": None,
    "depformer_layer_scale": None,
    "norm_emb": False,
    "bias_proj": False,
    "positional_scale": 1.0,
    "depformer_positional_scale": 1.0,
    "betas": None,
    "depformer_betas": None,
    "skip_self_attn": False,
    "depformer_skip_self_attn": False,
}
"""What no engine of the family computes otherwise. A key that is absent says this."""
_LISTS: Final = ("delays", "depformer_weights_per_step_schedule")
_OBJECTS: Final = ("conditioners", "fuser", "lm_gen_config", "stt_config", "tts_config", "model_id")
_IGNORED: Final = frozenset(
    {"moshi_name", "mimi_name", "mimi_config_name", "depformer_causal", "gradient_checkpointing", "lora_rank", "lora_scaling"}
)
_ADAPTED: Final = {
    "quantize": "weights in int8: convert the checkpoint in bf16, and `--dtype` as you like",
    "lora": "LoRA weights: merge them into the checkpoint first (W + scaling * B * A), and set it to false",
    "lora_name": "LoRA weights: merge them into the checkpoint first (W + scaling * B * A), and leave it out",
}
"""Say that the checkpoint is not all there is to the model; the remedy of each."""
_NUMBER: Final = "hidden_scale"
_COUNT_LIMIT: Final = 1 << 31


@dataclass(frozen=True)
class LmConfig:
    """A checked configuration: every key with its value or its default."""

    values: dict[str, Any]
    sha256: str | None
    """Of the file's bytes; None: the built-in one."""
    path: str

    def __getitem__(self, key: str) -> Any:
        """Return the value of a key."""
        return self.values[key]


def load_config(path: Path) -> LmConfig:
    """Read and check a config, or take the built-in one that ``path`` names.

    Raises:
        ModelAccessError: it cannot be read.
        CheckpointError: it says something that is not known, or contradicts itself; names the key.

    """
    if str(path) == MOSHI_7B and not path.exists():
        return LmConfig(checked_config(_moshi_7b()), None, MOSHI_7B)
    with SourceFile(path) as file:
        if file.size_bytes > CONFIG_CAP_BYTES:
            raise CheckpointError(str(path), f"{file.size_bytes} bytes", f"at most {CONFIG_CAP_BYTES}")
        text = file.read(0, file.size_bytes)
    try:
        fields = json.loads(text.decode("utf-8"), object_pairs_hook=_each_once)
    except (ValueError, RecursionError) as cause:
        raise CheckpointError(str(path), "text that is not JSON", "the config.json of a Moshi language model") from cause
    if not isinstance(fields, dict):
        raise CheckpointError(str(path), type(fields).__name__, "a JSON object")
    return LmConfig(checked_config(fields), hashlib.sha256(text).hexdigest(), str(path))


def checked_config(fields: dict[str, Any]) -> dict[str, Any]:
    """Return all keys with their values or defaults.

    Raises:
        CheckpointError: an unknown key, or a value no model of the family has.

    """
    _require_known(fields)
    values: dict[str, Any] = {key: _count(fields, key, default) for key, default in _COUNTS.items()}
    values |= {key: _of_type(fields, key, str, default, "a string") for key, default in _WORDS.items()}
    values |= {key: _of_type(fields, key, bool, default, "true or false") for key, default in _FLAGS.items()}
    values |= {key: _of_type(fields, key, dict, {}, "an object") for key in _OBJECTS}
    values |= {key: _counts(fields, key) for key in _LISTS}
    values[_NUMBER] = _scale(fields)
    if values["num_layers"] is None:
        raise refusal("num_layers", None, "a whole number of 1 or more")
    _inherit(values)
    _require_lists(values)
    return values


def refusal(key: str, found: Any, expected: str) -> CheckpointError:
    """Return the error for a key that is refused."""
    return CheckpointError(f"{CONFIG_NAME}: {key}", json.dumps(found)[:80], expected)


def _require_known(fields: dict[str, Any]) -> None:
    known = {*_COUNTS, *_WORDS, *_FLAGS, *_FIXED, *_LISTS, *_OBJECTS, *_IGNORED, *_ADAPTED, _NUMBER}
    for key, found in fields.items():
        if key not in known:
            raise CheckpointError(f"{CONFIG_NAME}: key {shown(key)}", "a key nothing is known of", "those of Kyutai's LMModel")
        if key in _ADAPTED and found:
            raise CheckpointError(f"{CONFIG_NAME}: {key}", json.dumps(found)[:80], _ADAPTED[key])
        if key in _FIXED:
            expected = _FIXED[key]
            if isinstance(found, bool) != isinstance(expected, bool) or found != expected:
                raise refusal(key, found, json.dumps(expected))


def _inherit(values: dict[str, Any]) -> None:
    """Fill in what the constructor takes from other keys."""
    for key in ("num_layers", "kv_repeat", "max_period", "gating"):
        if values[f"depformer_{key}"] is None:
            values[f"depformer_{key}"] = values[key]
    if values["text_card_out"] is None:
        values["text_card_out"] = values["text_card"]
    values["dim_feedforward"] = int(values[_NUMBER] * values["dim"])
    if values["depformer_dim_feedforward"] is None:
        values["depformer_dim_feedforward"] = int(values[_NUMBER] * values["depformer_dim"])
    if values["dep_q"] and values["depformer_num_heads"] is None:
        raise refusal("depformer_num_heads", None, "a whole number of 1 or more")
    if values["dep_q"] > values["n_q"]:
        raise refusal("dep_q", values["dep_q"], f"at most n_q, {values['n_q']}")


def _require_lists(values: dict[str, Any]) -> None:
    channels, levels = values["n_q"] + 1, values["dep_q"]
    delays = values["delays"] or [0]
    if len(delays) != channels:
        raise refusal("delays", delays, f"{channels} numbers, one for the text and one for each of n_q codebooks")
    values["delays"] = delays
    schedule = values["depformer_weights_per_step_schedule"]
    if schedule is not None and len(schedule) != levels:
        raise refusal("depformer_weights_per_step_schedule", schedule, f"{levels} numbers, one for each of dep_q codebooks")


def _count(fields: dict[str, Any], key: str, default: int | None) -> int | None:
    value = fields.get(key, default)
    if value is None and _COUNTS[key] is None:
        return None
    if key == "depformer_dim_feedforward" and isinstance(value, list) and len(set(map(str, value))) == 1:
        value = value[0]
    if key.endswith("max_period") and isinstance(value, float) and math.isfinite(value) and value.is_integer():
        value = int(value)
    least = 0 if key in _MAY_BE_ZERO else 1
    if type(value) is not int or not least <= value < _COUNT_LIMIT:
        raise refusal(key, value, f"a whole number of {least} or more")
    return value


def _counts(fields: dict[str, Any], key: str) -> list[int] | None:
    value = fields.get(key)
    if value is None:
        return None
    if not isinstance(value, list) or not all(type(item) is int and 0 <= item < _COUNT_LIMIT for item in value):
        raise refusal(key, value, "an array of whole numbers of 0 or more")
    return value


def _of_type(fields: dict[str, Any], key: str, kind: type, default: Any, expected: str) -> Any:
    value = fields.get(key)
    if value is None:
        return default
    if not isinstance(value, kind):
        raise refusal(key, value, expected)
    return value


def _scale(fields: dict[str, Any]) -> float:
    value = fields.get(_NUMBER, 4)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1024:
        raise refusal(_NUMBER, value, "a number above 0")
    return float(value)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        twice = next(name for name, _ in pairs if sum(name == other for other, _ in pairs) > 1)
        raise CheckpointError(f"{CONFIG_NAME}: key {shown(twice)}", "twice", "each key once")
    return fields


def _moshi_7b() -> dict[str, Any]:
    side = [0, 1, 1, 1, 1, 1, 1, 1]
    temporal = {"dim": 4096, "num_layers": 32, "num_heads": 32, "hidden_scale": 4.125, "context": 3000, "max_period": 10000}
    kinds = {"gating": "silu", "norm": "rms_norm_f32", "positional_embedding": "rope", "causal": True}
    depformer = {"dim": 1024, "dim_feedforward": 4224, "num_heads": 16, "num_layers": 6, "context": 8, "max_period": 10000}
    depformer_kinds = {"multi_linear": True, "weights_per_step": True, "gating": "silu", "pos_emb": "none"}
    return {
        "n_q": 16,
        "dep_q": 8,
        "card": 2048,
        "text_card": 32000,
        "existing_text_padding_id": 3,
        "delays": [0, *side, *side],
        **temporal,
        **kinds,
        **{f"depformer_{key}": value for key, value in {**depformer, **depformer_kinds}.items()},
    }
