"""Kyutai's published checkpoint (safetensors) as a planned model."""

from __future__ import annotations

import json
from typing import Any

from codec_core.convert.checkpoint_tensors import element_type, plan_codebook, plan_stored
from codec_core.convert.name_map import CLUSTER_USAGE, EMBEDDING_SUM, our_name
from codec_core.convert.planned_model import (
    MIMI_CONTEXT_STEPS,
    MIMI_HEADS,
    MIMI_LEVELS,
    MIMI_MAX_PERIOD,
    PlannedModel,
)
from codec_core.convert.source_file import SourceFile
from codec_core.errors import CheckpointError
from codec_core.safetensors_file import SafetensorsHeader


def read_kyutai(file: SourceFile, header: SafetensorsHeader, weight_class: str) -> PlannedModel:
    """Plan the conversion of a checkpoint.

    Args:
        file: the open checkpoint.
        header: its header, which has been read.
        weight_class: "f32" or "f16".

    Raises:
        CheckpointError: the tensors are not those of a Kyutai Mimi checkpoint; names the field.

    """
    tensors = []
    for stored in header.tensors.values():
        name = our_name(stored.name)
        element_type(stored)
        if stored.name.endswith(EMBEDDING_SUM) and name is not None:
            usage = stored.name.removesuffix(EMBEDDING_SUM) + CLUSTER_USAGE
            tensors.append(plan_codebook(file, header, stored, usage, name))
        elif name is not None:
            tensors.append(plan_stored(file, stored, name, weight_class))
    return PlannedModel(kind="Kyutai checkpoint", tensors=tensors, numerics="kyutai", **_geometry(header.metadata))


def _geometry(metadata: dict[str, str]) -> dict[str, Any]:
    """Read what shapes cannot tell from the header's ``geometry``, or take Mimi v0.1's values where it has none."""
    if "geometry" not in metadata:
        return {}
    try:
        geometry = json.loads(metadata["geometry"])
    except (ValueError, RecursionError) as cause:
        raise CheckpointError("geometry", "text that is not JSON", "a JSON object") from cause
    transformer = _part(geometry, "transformer")
    if _count(geometry, "sample_rate", 24_000) != 24_000 or geometry.get("frame_rate", 12.5) != 12.5:
        raise CheckpointError("geometry: sample_rate, frame_rate", "other values", "24000 and 12.5")
    name = geometry.get("model")
    if name is not None and (not isinstance(name, str) or not 1 <= len(name) <= 128):
        raise CheckpointError("geometry: model", repr(name)[:80], "a name")
    return {
        "name": name,
        "heads": _count(transformer, "num_heads", MIMI_HEADS),
        "context_steps": _count(transformer, "context", MIMI_CONTEXT_STEPS),
        "max_period": _count(transformer, "max_period", MIMI_MAX_PERIOD),
        "default_levels": _count(_part(geometry, "quantizer"), "n_q", MIMI_LEVELS),
    }


def _part(geometry: Any, key: str) -> dict[str, Any]:
    part = geometry.get(key) if isinstance(geometry, dict) else None
    if not isinstance(part, dict):
        raise CheckpointError(f"geometry: {key}", type(part).__name__, "an object")
    return part


def _count(part: dict[str, Any], key: str, default: int) -> int:
    value = part.get(key, default)
    if type(value) is not int or not 1 <= value < 1 << 32:
        raise CheckpointError(f"geometry: {key}", repr(value)[:80], "a whole number of 1 or more")
    return value
