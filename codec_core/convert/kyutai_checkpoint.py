"""Kyutai's published checkpoint (safetensors) as a planned model."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from codec_core.convert.element_types import ELEMENT_BYTES, widen
from codec_core.convert.name_map import (
    CLUSTER_USAGE,
    EMBEDDING_SUM,
    is_conv_bias,
    is_half_precision,
    our_name,
    require_kyutai_naming,
)
from codec_core.convert.planned_model import (
    MIMI_CONTEXT_STEPS,
    MIMI_HEADS,
    MIMI_LEVELS,
    MIMI_MAX_PERIOD,
    PlannedModel,
    PlannedTensor,
)
from codec_core.convert.source_file import SourceFile
from codec_core.errors import CheckpointError
from codec_core.safetensors_file import SafetensorsHeader, StoredTensor, read_header

_TYPES: Final = {"F32": "f32", "F16": "f16", "BF16": "bf16"}
_USAGE_FLOOR: Final = np.float32(1e-5)
"""Smallest usage a codebook entry's sum is divided by, as Kyutai's code clamps it."""


def read_checkpoint(file: SourceFile, weight_class: str) -> PlannedModel:
    """Plan the conversion of a checkpoint; reads its header only.

    Args:
        file: the open checkpoint.
        weight_class: "f32" or "f16".

    Raises:
        CheckpointError: the header lies, or the tensors are not those of a Kyutai Mimi checkpoint; names the field.

    """
    header = read_header(file.read, file.size_bytes, error=CheckpointError, subject=file.path)
    require_kyutai_naming(header.tensors)
    tensors = []
    for stored in header.tensors.values():
        name = our_name(stored.name)
        if stored.dtype not in _TYPES:
            raise CheckpointError(f"tensor {stored.name!r}", stored.dtype, "F32, F16 or BF16")
        if name is not None:
            tensors.append(_plan(file, header, stored, name, weight_class))
    return PlannedModel(kind="Kyutai checkpoint", tensors=tensors, numerics="kyutai", **_geometry(header.metadata))


def _plan(file: SourceFile, header: SafetensorsHeader, stored: StoredTensor, name: str, weight_class: str) -> PlannedTensor:
    written = "f16" if weight_class == "f16" and is_half_precision(name) else "f32"
    dims = _ggml_dims(name, stored.shape)
    if 0 in dims:
        raise CheckpointError(f"tensor {stored.name!r}: shape", f"{list(stored.shape)}", "sizes of 1 or more")
    if stored.name.endswith(EMBEDDING_SUM):
        usage = _usage_of(header, stored)
        return PlannedTensor(name, dims, "f32", functools.partial(_divide, file, stored, usage), written, is_computed=True)
    stored_type = _TYPES[stored.dtype]
    read = functools.partial(file.pieces, stored.offset_bytes, stored.size_bytes, ELEMENT_BYTES[stored_type])
    return PlannedTensor(name, dims, stored_type, read, written)


def _ggml_dims(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Reverse a shape and drop trailing ones; a conv's bias becomes a row per channel. As GGUF files of Mimi have them."""
    if is_conv_bias(name) and len(shape) == 1:
        return (1, shape[0])
    dims = list(reversed(shape))
    while len(dims) > 1 and dims[-1] == 1:
        dims.pop()
    return tuple(dims) or (1,)


def _usage_of(header: SafetensorsHeader, sums: StoredTensor) -> StoredTensor:
    name = sums.name.removesuffix(EMBEDDING_SUM) + CLUSTER_USAGE
    usage = header.tensors.get(name)
    if usage is None:
        raise CheckpointError(f"tensor {name!r}", "no such tensor", f"the usage that {EMBEDDING_SUM!r} is divided by")
    if len(sums.shape) != 2 or usage.shape != sums.shape[:1]:
        raise CheckpointError(f"tensor {name!r}: shape", f"{list(usage.shape)}", f"[entries] of {list(sums.shape)}")
    return usage


def _divide(file: SourceFile, sums: StoredTensor, usage: StoredTensor) -> Iterator[bytes]:
    """Yield a codebook: each row of sums divided by its entry's usage, one rounding per value."""
    counts = widen(file.read(usage.offset_bytes, usage.size_bytes), _TYPES[usage.dtype])
    divisors = np.maximum(counts, _USAGE_FLOOR)
    row = 0
    for piece in file.pieces(sums.offset_bytes, sums.size_bytes, sums.size_bytes // sums.shape[0]):
        rows = widen(piece, _TYPES[sums.dtype]).reshape(-1, sums.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):
            yield (rows / divisors[row : row + len(rows), None]).astype("<f4").tobytes()
        row += len(rows)


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
