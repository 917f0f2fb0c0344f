"""Planned tensors in blocks of quantised types, and how far that moves them; the codec's class q8_0 is its projections so."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from codec_core.convert.element_types import BLOCK_BYTES, BLOCK_ELEMENTS, narrow, whole_units, widen
from codec_core.convert.name_map import is_projection
from codec_core.convert.planned_model import PlannedModel, PlannedTensor
from codec_core.errors import CheckpointError
from codec_core.safetensors_file import shown

QUANTISED: Final = "q8_0"


@dataclass(frozen=True)
class QuantisedTensor:
    """What quantising did to one tensor."""

    name: str
    type: str
    """That it has become."""
    elements: int
    relative_rms: float
    """RMS of the error over the RMS of the values; 0 for a tensor of zeros."""
    largest_error: float


@dataclass
class Quantisation:
    """The tensors that are quantised, and their errors as they are written."""

    errors: list[_Error] = field(default_factory=list)

    def apply(self, plan: PlannedModel) -> PlannedModel:
        """Plan every projection as q8_0; those that are already stay byte for byte.

        Raises:
            CheckpointError: a projection whose rows are no whole blocks.

        """
        return dataclasses.replace(plan, tensors=[self._planned(tensor) for tensor in plan.tensors])

    def report(self) -> list[QuantisedTensor]:
        """Return what was done, in the file's order, once the file is written."""
        return [error.report() for error in self.errors]

    def _planned(self, tensor: PlannedTensor) -> PlannedTensor:
        if not is_projection(tensor.name) or tensor.stored_type == QUANTISED:
            return tensor
        # A 1x1 conv is a matrix.
        dims = tensor.dims[1:] if len(tensor.dims) == 3 and tensor.dims[0] == 1 else tensor.dims
        if dims[0] % BLOCK_ELEMENTS[QUANTISED] != 0:
            expected = f"a multiple of {BLOCK_ELEMENTS[QUANTISED]} for {QUANTISED}; convert without it"
            raise CheckpointError(f"tensor {shown(tensor.name)}: rows", f"{dims[0]} values", expected)
        return self.quantised(dataclasses.replace(tensor, dims=dims), QUANTISED)

    def quantised(self, tensor: PlannedTensor, type_name: str) -> PlannedTensor:
        """Plan a tensor of f32, f16 or bf16, whose rows are whole blocks, as a quantised type; its error will be reported."""
        error = _Error(tensor.name, type_name)
        self.errors.append(error)
        read = functools.partial(_quantised, tensor, error)
        return PlannedTensor(tensor.name, tensor.dims, type_name, read, type_name, is_computed=True)


@dataclass
class _Error:
    """Sums over one tensor."""

    name: str
    type: str
    elements: int = 0
    squares: float = 0.0
    error_squares: float = 0.0
    largest: float = 0.0

    def report(self) -> QuantisedTensor:
        relative = float(np.sqrt(self.error_squares / self.squares)) if self.squares else 0.0
        return QuantisedTensor(self.name, self.type, self.elements, relative, self.largest)


def _quantised(tensor: PlannedTensor, error: _Error) -> Iterator[bytes]:
    stored = tensor.stored_type
    for piece in whole_units(tensor.read(), BLOCK_BYTES[stored] * BLOCK_ELEMENTS[error.type]):
        values = widen(piece, stored)
        data = narrow(values, error.type, tensor.name).tobytes()
        off = widen(data, error.type).astype(np.float64) - values
        error.elements += len(values)
        error.squares += float((values.astype(np.float64) ** 2).sum())
        error.error_squares += float((off**2).sum())
        error.largest = max(error.largest, float(np.abs(off).max()))
        yield data
