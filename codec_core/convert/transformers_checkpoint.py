"""A checkpoint of the transformers library (``model.safetensors`` with ``config.json`` beside it) as a planned model.

transformers pairs the two halves of a head for its rotary embedding, where Kyutai's code and the engine pair neighbours. Its
query and key rows are therefore Kyutai's in another order, which is undone here; no value changes.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from codec_core.convert.checkpoint_tensors import element_type, ggml_dims, plan_codebook, plan_stored, written_type
from codec_core.convert.element_types import widen
from codec_core.convert.name_map import our_name
from codec_core.convert.planned_model import CODEBOOK, MIMI_LEVELS, PlannedModel, PlannedTensor
from codec_core.convert.source_file import SourceFile
from codec_core.convert.transformers_config import CONFIG_NAME, TransformersConfig, read_config
from codec_core.convert.transformers_names import CLUSTER_USAGE, EMBED_SUM, KEY, QUERY, VALUE, kyutai_name
from codec_core.errors import CheckpointError
from codec_core.safetensors_file import SafetensorsHeader, StoredTensor, shown

WEIGHTS_NAME: Final = "model.safetensors"
_INDEX_NAME: Final = "model.safetensors.index.json"


def weights_in(directory: Path) -> Path:
    """Return the weights in a directory written by transformers.

    Raises:
        CheckpointError: there are none in a form that is read.

    """
    weights = directory / WEIGHTS_NAME
    if weights.exists():
        return weights
    found = f"no {WEIGHTS_NAME}"
    if (directory / _INDEX_NAME).exists():
        found = f"weights in several files ({_INDEX_NAME})"
    raise CheckpointError(str(directory), found, f"a model of transformers: {CONFIG_NAME} and one {WEIGHTS_NAME}")


def read_transformers(file: SourceFile, header: SafetensorsHeader, weight_class: str) -> PlannedModel:
    """Plan the conversion of a checkpoint whose tensors are named as transformers names them.

    Args:
        file: the open ``.safetensors``; ``config.json`` is read from its directory.
        header: its header, which has been read.
        weight_class: "f32" or "f16".

    Raises:
        ModelAccessError: the config cannot be read.
        CheckpointError: the config or the tensors are not those of a Mimi model the engine runs; names the key or tensor.

    """
    folder = Path(file.path).absolute().parent
    if not (folder / CONFIG_NAME).exists():
        expected = f"the {CONFIG_NAME} that transformers wrote beside {Path(file.path).name}"
        raise CheckpointError(str(folder / CONFIG_NAME), "no such file", expected)
    config = read_config(folder / CONFIG_NAME)
    reader = _Reader(file, header, config.heads, weight_class)
    tensors = [planned for stored in header.tensors.values() if (planned := reader.plan(stored)) is not None]
    _require_levels(config, sum(tensor.name.endswith(CODEBOOK) for tensor in tensors))
    return PlannedModel(
        kind="transformers checkpoint",
        tensors=tensors,
        numerics="kyutai",
        name=folder.name[:128] or None,
        heads=config.heads,
        context_steps=config.context_steps,
        max_period=config.max_period,
        default_levels=MIMI_LEVELS,
        config_sha256=config.sha256,
    )


def _require_levels(config: TransformersConfig, levels: int) -> None:
    if config.levels not in (None, levels):
        expected = f"{levels}, the codebooks of the checkpoint"
        raise CheckpointError(f"{CONFIG_NAME}: num_quantizers", f"{config.levels}", expected)


@dataclass(frozen=True)
class _Reader:
    """Plans the tensors of one checkpoint."""

    file: SourceFile
    header: SafetensorsHeader
    heads: int
    weight_class: str

    def plan(self, stored: StoredTensor) -> PlannedTensor | None:
        """Plan what becomes of a tensor; None where another one takes it along."""
        element_type(stored)
        published = kyutai_name(stored.name)
        name = None if published is None else our_name(published)
        if name is None:
            return None
        if stored.name.endswith(EMBED_SUM):
            usage = stored.name.removesuffix(EMBED_SUM) + CLUSTER_USAGE
            return plan_codebook(self.file, self.header, stored, usage, name)
        if stored.name.endswith(QUERY):
            return self._plan_attention_input(stored, name)
        return plan_stored(self.file, stored, name, self.weight_class)

    def _plan_attention_input(self, query: StoredTensor, name: str) -> PlannedTensor:
        stem = query.name.removesuffix(QUERY)
        parts = [query, self._part(stem + KEY), self._part(stem + VALUE)]
        for part in parts:
            _require_heads(part, self.heads, query.shape)
        inputs, outputs = ggml_dims(name, query)
        read = functools.partial(_merge, self.file, parts, self.heads)
        return PlannedTensor(name, (inputs, 3 * outputs), "f32", read, written_type(name, self.weight_class), is_computed=True)

    def _part(self, name: str) -> StoredTensor:
        part = self.header.tensors.get(name)
        if part is None:
            raise CheckpointError(f"tensor {shown(name)}", "no such tensor", "query, key and value projections in every layer")
        element_type(part)
        return part


def _require_heads(part: StoredTensor, heads: int, shape: tuple[int, ...]) -> None:
    rows_per_head = part.shape[0] // heads if part.shape else 0
    is_matrix_of_heads = len(part.shape) == 2 and min(part.shape) > 1 and part.shape[0] == rows_per_head * heads
    if part.shape != shape or not is_matrix_of_heads or rows_per_head % 2 != 0:
        expected = f"the query's {list(shape)}, in {heads} heads of an even number of rows"
        raise CheckpointError(f"tensor {shown(part.name)}: shape", f"{list(part.shape)}", expected)


def _merge(file: SourceFile, parts: list[StoredTensor], heads: int) -> Iterator[bytes]:
    """Yield query, key and value one after the other, a head at a time, the rows of the first two in Kyutai's order."""
    for part, is_rotated in zip(parts, (True, True, False), strict=True):
        stored_type = element_type(part)
        head_bytes = part.size_bytes // heads
        for head in range(heads):
            data = file.read(part.offset_bytes + head * head_bytes, head_bytes)
            rows = widen(data, stored_type).reshape(2, -1, part.shape[1])
            yield (rows.swapaxes(0, 1) if is_rotated else rows).astype("<f4").tobytes()
