"""Plans the tensors that every checkpoint in safetensors stores alike, whatever it calls them."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from codec_core.convert.element_types import BLOCK_BYTES, widen
from codec_core.convert.name_map import is_conv_bias, is_half_precision
from codec_core.convert.planned_model import PlannedTensor
from codec_core.convert.source_file import SourceFile
from codec_core.errors import CheckpointError
from codec_core.safetensors_file import SafetensorsHeader, StoredTensor, shown

_TYPES: Final = {"F32": "f32", "F16": "f16", "BF16": "bf16"}
_USAGE_FLOOR: Final = np.float32(1e-5)
"""Smallest usage a codebook entry's sum is divided by, as Kyutai's code clamps it."""


def plan_stored(file: SourceFile, stored: StoredTensor, name: str, weight_class: str) -> PlannedTensor:
    """Plan a tensor whose values are taken as they are stored.

    Args:
        file: the checkpoint.
        stored: where the values lie.
        name: ours.
        weight_class: "f32" or "f16".

    Raises:
        CheckpointError: a type or shape no tensor of Mimi has.

    """
    stored_type = element_type(stored)
    read = functools.partial(file.pieces, stored.offset_bytes, stored.size_bytes, BLOCK_BYTES[stored_type])
    return PlannedTensor(name, ggml_dims(name, stored), stored_type, read, written_type(name, weight_class))


def plan_codebook(file: SourceFile, header: SafetensorsHeader, sums: StoredTensor, usage_name: str, name: str) -> PlannedTensor:
    """Plan a codebook, which checkpoints store as the sums and the usages of its entries.

    Args:
        file: the checkpoint.
        header: its header.
        sums: [entries, codebook_dim].
        usage_name: the checkpoint's name of the usages, [entries].
        name: ours.

    Raises:
        CheckpointError: there are no usages, or they do not fit the sums.

    """
    element_type(sums)
    usage = header.tensors.get(usage_name)
    if usage is None:
        raise CheckpointError(
            f"tensor {shown(usage_name)}", "no such tensor", f"the usage that {shown(sums.name)} is divided by"
        )
    element_type(usage)
    if len(sums.shape) != 2 or usage.shape != sums.shape[:1]:
        raise CheckpointError(f"tensor {shown(usage_name)}: shape", f"{list(usage.shape)}", f"[entries] of {list(sums.shape)}")
    read = functools.partial(_divide, file, sums, usage)
    return PlannedTensor(name, ggml_dims(name, sums), "f32", read, "f32", is_computed=True)


def element_type(stored: StoredTensor) -> str:
    """Return the storage type of a tensor: "f32", "f16" or "bf16".

    Raises:
        CheckpointError: it has another.

    """
    if stored.dtype not in _TYPES:
        raise CheckpointError(f"tensor {shown(stored.name)}", stored.dtype, "F32, F16 or BF16")
    return _TYPES[stored.dtype]


def read_widened(file: SourceFile, stored: StoredTensor) -> npt.NDArray[Any]:
    """Return a small tensor as flat f32."""
    return widen(file.read(stored.offset_bytes, stored.size_bytes), element_type(stored))


def written_type(name: str, weight_class: str) -> str:
    """Return the type a tensor (by our name) is written in: "f32" or "f16"."""
    return "f16" if weight_class == "f16" and is_half_precision(name) else "f32"


def ggml_dims(name: str, stored: StoredTensor) -> tuple[int, ...]:
    """Reverse a shape and drop trailing ones; a conv's bias becomes a row per channel. As GGUF files of Mimi have them.

    Raises:
        CheckpointError: a size of 0.

    """
    shape = stored.shape
    if 0 in shape:
        raise CheckpointError(f"tensor {shown(stored.name)}: shape", f"{list(shape)}", "sizes of 1 or more")
    if is_conv_bias(name) and len(shape) == 1:
        return (1, shape[0])
    dims = list(reversed(shape))
    while len(dims) > 1 and dims[-1] == 1:
        dims.pop()
    return tuple(dims) or (1,)


def _divide(file: SourceFile, sums: StoredTensor, usage: StoredTensor) -> Iterator[bytes]:
    """Yield a codebook: each row of sums divided by its entry's usage, one rounding per value."""
    divisors = np.maximum(read_widened(file, usage), _USAGE_FLOOR)
    row = 0
    for piece in file.pieces(sums.offset_bytes, sums.size_bytes, sums.size_bytes // sums.shape[0]):
        rows = widen(piece, element_type(sums)).reshape(-1, sums.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):
            yield (rows / divisors[row : row + len(rows), None]).astype("<f4").tobytes()
        row += len(rows)
