"""Tensors of a language model's source, a checkpoint in safetensors or a GGUF file, as planned tensors.

A fused attention is cut by its rows, which are neighbours; nothing else changes but types, and those only where asked.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from codec_core.convert.element_types import BLOCK_BYTES
from codec_core.convert.lm_names import PREFIX, in_order, keeps_f32, published_name
from codec_core.convert.planned_model import PlannedTensor
from codec_core.convert.source_file import SourceFile
from codec_core.errors import CheckpointError
from codec_core.gguf_file import GgufFile
from codec_core.safetensors_file import SafetensorsHeader, shown

KEPT: Final = "keep"
LM_DTYPES: Final = ("f32", "f16", "bf16", KEPT)
_PLAIN: Final = ("f32", "f16", "bf16")
_TYPES: Final = (*_PLAIN, "q8_0", "q4_0", "q4_k")
_SAFETENSORS_TYPES: Final = {"F32": "f32", "F16": "f16", "BF16": "bf16"}


@dataclass(frozen=True)
class SourceTensor:
    """A tensor as a source stores it."""

    name: str
    """Published, without ``lm.``."""
    type: str
    dims: tuple[int, ...]
    """ggml order: fastest-varying first."""
    offset_bytes: int
    size_bytes: int


@dataclass(frozen=True)
class AttentionRows:
    """Rows that the attention of one weight set has in a fused tensor, by the part of the model."""

    inputs: dict[str, int]
    """Queries, keys and values, by "transformer", "depformer" and "cross"."""
    outputs: dict[str, int]
    sets: dict[str, list[int]]
    """How many sets there may be, the whole number first."""


def checkpoint_tensors(header: SafetensorsHeader) -> list[SourceTensor]:
    """Return the tensors of a checkpoint.

    Raises:
        CheckpointError: a type that is not converted, or a size of 0.

    """
    tensors = []
    for stored in header.tensors.values():
        name = stored.name.removeprefix(PREFIX)
        published_name(name)
        if stored.dtype == "I8":
            expected = "F32, F16 or BF16: convert the checkpoint in bf16"
            raise CheckpointError(f"tensor {shown(stored.name)}", "I8, a checkpoint in int8", expected)
        if stored.dtype not in _SAFETENSORS_TYPES:
            raise CheckpointError(f"tensor {shown(stored.name)}", stored.dtype, "F32, F16 or BF16")
        if 0 in stored.shape or not stored.shape:
            raise CheckpointError(f"tensor {shown(stored.name)}: shape", f"{list(stored.shape)}", "sizes of 1 or more")
        dims = tuple(reversed(stored.shape))
        tensors.append(SourceTensor(name, _SAFETENSORS_TYPES[stored.dtype], dims, stored.offset_bytes, stored.size_bytes))
    return tensors


def gguf_tensors(file: GgufFile, names: dict[str, str]) -> list[SourceTensor]:
    """Return the tensors of a GGUF file.

    Args:
        file: the open file.
        names: full names by stored ones, with ``lm.``.

    Raises:
        CheckpointError: a type that is not converted, or a name without ``lm.``.

    """
    tensors = []
    for stored in file.tensors.values():
        name = names[stored.name]
        if not name.startswith(PREFIX):
            raise CheckpointError(f"tensor {shown(name)}", "a name without 'lm.'", "the tensors of a Moshi language model")
        if stored.type not in _TYPES:
            raise CheckpointError(f"tensor {shown(name)}: type", stored.type, " or ".join(_TYPES))
        tensors.append(
            SourceTensor(name.removeprefix(PREFIX), stored.type, stored.dims, stored.offset_bytes, stored.size_bytes)
        )
    return tensors


def plan_lm_tensors(
    file: SourceFile, sources: Iterable[SourceTensor], rows: AttentionRows, dtype: str, *, without: frozenset[str]
) -> list[PlannedTensor]:
    """Plan the tensors of the file to be written, in the order a step needs them.

    Args:
        file: where the payloads are.
        sources: the tensors.
        rows: how fused attention is cut.
        dtype: one of :data:`LM_DTYPES`, for all but norms and conditions, which are f32. Quantised blocks stay as they are.
        without: names of tensors that are left out: the model has them and never uses them.

    Raises:
        CheckpointError: a name twice, or a shape that does not fit the name.

    """
    parts = [part for source in sources if source.name not in without for part in _parts(source, rows)]
    seen: set[str] = set()
    for part in parts:
        if part.name in seen:
            raise CheckpointError(f"tensor {shown(PREFIX + part.name)}", "a second one", "every tensor once")
        seen.add(part.name)
    return [_planned(file, part, dtype) for part in sorted(parts, key=lambda part: in_order(part.name))]


def _parts(source: SourceTensor, rows: AttentionRows) -> list[SourceTensor]:
    """Return a tensor under our name, dims as ours are; or the parts of a fused one."""
    published = published_name(source.name)
    dims = source.dims
    while len(dims) > (1 if published.is_vector else 2) and dims[-1] == 1:
        dims = dims[:-1]
    if not published.fused:
        return [replace(source, dims=dims)]
    part = "cross" if ".cross_attention." in source.name else source.name.partition(".")[0]
    each = (rows.inputs if published.fused == "in" else rows.outputs)[part]
    sets = next((sets for sets in rows.sets[part] if dims[1:] == (sets * each,)), 0)
    if sets == 0:
        expected = f"{rows.sets[part][0] * each} rows: {rows.sets[part][0]} weight sets of {each}"
        raise CheckpointError(f"tensor {shown(PREFIX + source.name)}: shape", f"{list(reversed(dims))}", expected)
    size_bytes = source.size_bytes // sets
    return [
        SourceTensor(
            f"{published.name}.{index}.weight",
            source.type,
            (dims[0], each),
            source.offset_bytes + index * size_bytes,
            size_bytes,
        )
        for index in range(sets)
    ]


def _planned(file: SourceFile, part: SourceTensor, dtype: str) -> PlannedTensor:
    written = part.type
    if part.type in _PLAIN:
        written = "f32" if keeps_f32(part.name) else part.type if dtype == KEPT else dtype
    read = functools.partial(file.pieces, part.offset_bytes, part.size_bytes, BLOCK_BYTES[part.type])
    return PlannedTensor(PREFIX + part.name, part.dims, part.type, read, written)
