"""What a source holds, in the terms of the file to be written."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from codec_core.convert.element_types import BLOCK_BYTES, BLOCK_ELEMENTS, recode
from codec_core.errors import CheckpointError
from codec_core.safetensors_file import shown

CODEBOOK: Final = "._codebook.embedding"
"""How the names of codebooks end."""
MIMI_HEADS: Final = 8
MIMI_CONTEXT_STEPS: Final = 250
MIMI_MAX_PERIOD: Final = 10_000
MIMI_LEVELS: Final = 8
"""What Mimi v0.1 has where neither shapes nor metadata tell: heads, attention context, rotary period, levels in use."""


@dataclass(frozen=True)
class PlannedTensor:
    """A tensor to be written, its payload not yet read."""

    name: str
    """Ours."""
    dims: tuple[int, ...]
    """ggml order: fastest-varying first."""
    stored_type: str
    """Type of what ``read`` yields."""
    read: Callable[[], Iterator[bytes]]
    """Yields the payload in pieces of whole elements."""
    written_type: str
    is_computed: bool = False
    """Whether ``read`` computes what it yields, rather than taking it from the source as it is."""

    @property
    def is_unchanged(self) -> bool:
        """Whether the source's own bytes are written."""
        return self.stored_type == self.written_type and not self.is_computed

    @property
    def size_bytes(self) -> int:
        """Bytes it will take in the file."""
        return math.prod(self.dims) // BLOCK_ELEMENTS[self.written_type] * BLOCK_BYTES[self.written_type]

    def payload(self) -> Iterator[bytes]:
        """Yield the payload as it is written."""
        return recode(self.read(), self.stored_type, self.written_type, self.name)


@dataclass(frozen=True)
class PlannedModel:
    """A whole source."""

    kind: str
    """What the source was, for the report."""
    tensors: list[PlannedTensor]
    numerics: str
    name: str | None = None
    heads: int = MIMI_HEADS
    context_steps: int = MIMI_CONTEXT_STEPS
    max_period: int = MIMI_MAX_PERIOD
    default_levels: int = MIMI_LEVELS
    """RVQ levels the source says to use, which may be more than it has."""
    kept_texts: dict[str, str] = field(default_factory=dict)
    """``general.*`` strings of the source that are carried over."""
    config_sha256: str | None = None
    """Of the config beside the source whose values are taken; None: the source has none."""

    def tensor(self, name: str) -> PlannedTensor:
        """Return a tensor by our name.

        Raises:
            CheckpointError: the source has none of that name.

        """
        for tensor in self.tensors:
            if tensor.name == name:
                return tensor
        raise CheckpointError(f"tensor {shown(name)}", "no such tensor", "the tensors of a Mimi model")

    def count(self, prefix: str, suffix: str) -> int:
        """Count the tensors whose names begin and end like that."""
        return sum(tensor.name.startswith(prefix) and tensor.name.endswith(suffix) for tensor in self.tensors)

    def retyped(self, element_type: str, belongs: Callable[[str], bool]) -> PlannedModel:
        """Return the model with the tensors that ``belongs`` tells by name written as "f32" or "f16". What is q8_0 stays so."""
        tensors = [
            replace(tensor, written_type=element_type) if belongs(tensor.name) and tensor.written_type != "q8_0" else tensor
            for tensor in self.tensors
        ]
        return replace(self, tensors=tensors)

    @property
    def levels(self) -> int:
        """Return the number of RVQ levels in the source."""
        return self.count("mimi.quantizer.", CODEBOOK)

    @property
    def weight_class(self) -> str:
        """Return the class the tensors will be written in: "f32", "f16" or "q8_0"."""
        written = {tensor.written_type for tensor in self.tensors}
        return next((name for name in ("q8_0", "f16") if name in written), "f32")
