"""A GGUF file of Mimi, raw as moshi.cpp writes it or with metadata, as a planned model."""

from __future__ import annotations

import functools
from typing import Any, Final

from codec_core import _ext
from codec_core.convert.element_types import BLOCK_BYTES, GGML_TYPE_IDS
from codec_core.convert.gguf_layout import payload_offsets
from codec_core.convert.name_map import is_half_precision
from codec_core.convert.planned_model import PlannedModel, PlannedTensor
from codec_core.convert.source_file import SourceFile
from codec_core.errors import CheckpointError
from codec_core.safetensors_file import shown

_REWRITTEN_TEXTS: Final = frozenset({"general.architecture", "general.name"})


def read_gguf(file: SourceFile, weight_class: str | None) -> PlannedModel:
    """Plan the conversion of a GGUF file. Names that moshi.cpp shortened are restored by the engine's own rule.

    Args:
        file: the open file.
        weight_class: "f32" or "f16"; None keeps every tensor's type, and so every payload's bytes. What is q8_0 stays q8_0.

    Raises:
        ModelFormatError, ModelContractError: the engine would not read the file either, or a shortened name is ambiguous.
        CheckpointError: a type that is not converted.
        ModelAccessError: the file changed since it was opened.

    """
    inspected = _ext.inspect_model(file.path)
    # The engine goes by the path: what it saw must be the file that is open.
    file.require_unchanged()
    offsets = payload_offsets(file)
    tensors = [_plan(file, entry, offsets[entry["stored_name"]], weight_class) for entry in inspected["tensors"]]
    geometry, metadata = inspected["geometry"], inspected["metadata"]
    transformer = geometry["encoder_transformer"]
    return PlannedModel(
        kind="GGUF with metadata" if metadata else "raw GGUF",
        tensors=tensors,
        numerics=inspected["numerics"],
        name=inspected["name"],
        heads=transformer["heads"],
        context_steps=transformer["context_steps"],
        max_period=int(transformer["max_period"]),
        default_levels=geometry["default_levels"],
        kept_texts=kept_texts(metadata),
    )


def kept_texts(metadata: dict[str, Any]) -> dict[str, str]:
    """Return author, licence, description and the like."""
    return {
        key: value
        for key, value in metadata.items()
        if key.startswith("general.") and isinstance(value, str) and key not in _REWRITTEN_TEXTS
    }


def _plan(file: SourceFile, entry: dict[str, Any], offset: int, weight_class: str | None) -> PlannedTensor:
    name, stored = entry["name"], entry["type"]
    if stored not in GGML_TYPE_IDS:
        raise CheckpointError(f"tensor {shown(name)}: type", stored, " or ".join(GGML_TYPE_IDS))
    written = stored
    if weight_class is not None and stored != "q8_0":
        written = "f16" if weight_class == "f16" and is_half_precision(name) else "f32"
    read = functools.partial(file.pieces, offset, entry["bytes"], BLOCK_BYTES[stored])
    return PlannedTensor(name, tuple(reversed(entry["shape"])), stored, read, written)
