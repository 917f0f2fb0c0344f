"""The ``config.json`` beside a checkpoint of the transformers library: what the tensors' shapes cannot tell."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from codec_core.convert.planned_model import MIMI_CONTEXT_STEPS, MIMI_HEADS, MIMI_MAX_PERIOD
from codec_core.convert.source_file import SourceFile
from codec_core.errors import CheckpointError

CONFIG_NAME: Final = "config.json"
CONFIG_CAP_BYTES: Final = 1 << 20
"""Longest file that is read. The published one is 1 KB."""

_FIXED: Final[dict[str, Any]] = {
    "model_type": "mimi",
    "sampling_rate": 24_000,
    "frame_rate": 12.5,
    "_frame_rate": 12.5,
    "audio_channels": 1,
    "normalize": False,
    "upsampling_ratios": [8, 6, 5, 4],
    "num_residual_layers": 1,
    "use_causal_conv": True,
    "pad_mode": "constant",
    "trim_right_ratio": 1.0,
    "use_conv_shortcut": False,
    "hidden_act": "gelu",
    "norm_eps": 1e-5,
    "attention_bias": False,
    "rope_scaling": None,
}
"""What the engine computes without asking. A key that is absent or null is taken to say this."""
_ROPE_TYPES: Final = ("rope_type", "type")
"""Names the kind of rotary embedding has had."""


@dataclass(frozen=True)
class TransformersConfig:
    """What is taken from a config."""

    heads: int
    context_steps: int
    max_period: int
    levels: int | None
    """RVQ levels it says the tensors have; None: it does not say."""
    sha256: str
    """Of the file's bytes."""


def read_config(path: Path) -> TransformersConfig:
    """Read and check a config.

    Raises:
        ModelAccessError: it cannot be read.
        CheckpointError: it says something the engine does not compute; names the key.

    """
    with SourceFile(path) as file:
        if file.size_bytes > CONFIG_CAP_BYTES:
            raise CheckpointError(str(path), f"{file.size_bytes} bytes", f"at most {CONFIG_CAP_BYTES}")
        text = file.read(0, file.size_bytes)
    try:
        fields = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as cause:
        raise CheckpointError(str(path), "text that is not JSON", "the config.json of transformers' MimiModel") from cause
    if not isinstance(fields, dict):
        raise CheckpointError(str(path), type(fields).__name__, "a JSON object")
    _require_fixed(fields)
    return _read(fields, hashlib.sha256(text).hexdigest())


def _require_fixed(fields: dict[str, Any]) -> None:
    for key, expected in _FIXED.items():
        found = fields.get(key)
        same_kind = isinstance(found, bool) == isinstance(expected, bool)
        if found is not None and not (same_kind and found == expected):
            raise _refusal(key, found, json.dumps(expected))


def _read(fields: dict[str, Any], sha256: str) -> TransformersConfig:
    heads = _count(fields, "num_attention_heads", MIMI_HEADS)
    if _count(fields, "num_key_value_heads", heads) != heads:
        raise _refusal("num_key_value_heads", fields["num_key_value_heads"], f"{heads}, as many as num_attention_heads")
    width = _count(fields, "hidden_size", heads)
    if "hidden_size" in fields and _count(fields, "head_dim", width // heads) * heads != width:
        raise _refusal("head_dim", fields.get("head_dim"), f"hidden_size over heads, {width} / {heads}")
    return TransformersConfig(
        heads=heads,
        context_steps=_count(fields, "sliding_window", MIMI_CONTEXT_STEPS),
        max_period=_max_period(fields),
        levels=_count(fields, "num_quantizers", 0) or None,
        sha256=sha256,
    )


def _max_period(fields: dict[str, Any]) -> int:
    """Read the rotary period, which has moved from a key of its own into an object."""
    rope = fields.get("rope_parameters")
    if rope is not None and not isinstance(rope, dict):
        raise _refusal("rope_parameters", rope, "an object")
    rope = rope or {}
    for key in _ROPE_TYPES:
        if rope.get(key) not in (None, "default"):
            raise _refusal(f"rope_parameters: {key}", rope[key], '"default"')
    value = rope.get("rope_theta", fields.get("rope_theta", MIMI_MAX_PERIOD))
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        value = int(value)
    return _count({"rope_theta": value}, "rope_theta", MIMI_MAX_PERIOD)


def _count(fields: dict[str, Any], key: str, default: int) -> int:
    if key not in fields:
        return default
    value = fields[key]
    if type(value) is not int or not 1 <= value < 1 << 32:
        raise _refusal(key, value, "a whole number of 1 or more")
    return value


def _refusal(key: str, found: Any, expected: str) -> CheckpointError:
    return CheckpointError(f"{CONFIG_NAME}: {key}", json.dumps(found)[:80], expected)
