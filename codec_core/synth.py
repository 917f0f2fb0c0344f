"""Deterministic synthetic checkpoints in the form Kyutai publishes: for tests, benchmarks and golden vectors.

A preset's file has the same bytes on any machine. Codes vary with the input, but nothing was trained.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np

from codec_core.atomic_file import atomic_output
from codec_core.errors import CheckpointError, SettingError
from codec_core.safetensors_file import build_header
from codec_core.synth_tensors import RATIOS, SynthPreset, plan_tensors

CHUNK_ELEMENTS: Final = 1 << 16

PRESETS: Final = {
    "full": SynthPreset("full", 64, 512, 8, 8, 2048, 250, 2048, 256, default_levels=8),
    "mini": SynthPreset("mini", 16, 128, 2, 8, 512, 250, 1024, 96),
    "tiny": SynthPreset("tiny", 4, 16, 2, 2, 32, 8, 32, 8),
    "deep": SynthPreset("deep", 4, 64, 24, 4, 256, 16, 64, 32),
}
"""``full`` has the sizes of Mimi v0.1, ``mini`` those of the embedded default, ``tiny`` runs in no time; ``deep`` has long
transformers, of any size (:func:`deep_preset`), for the tensor window."""


def deep_preset(
    layers: int | None = None,
    dim: int | None = None,
    heads: int | None = None,
    mlp_width: int | None = None,
    context_steps: int | None = None,
) -> SynthPreset:
    """Return the preset ``deep`` with other sizes; what is not given stays, but ``mlp_width`` is four times ``dim``.

    Raises:
        SettingError: a size below 1, or heads that do not cut ``dim`` into even widths.

    """
    deep = PRESETS["deep"]
    width = 4 * dim if dim is not None and mlp_width is None else mlp_width
    preset = replace(
        deep,
        layers=_checked_size("layers", layers, deep.layers),
        dim=_checked_size("dim", dim, deep.dim),
        heads=_checked_size("heads", heads, deep.heads),
        mlp_width=_checked_size("mlp_width", width, deep.mlp_width),
        context_steps=_checked_size("context_steps", context_steps, deep.context_steps),
    )
    if preset.dim % (2 * preset.heads):
        raise SettingError("heads", str(preset.heads), f"heads of an even width that divide {preset.dim}")
    return preset


def _checked_size(name: str, given: int | None, default: int) -> int:
    if given is not None and given < 1:
        raise SettingError(name, str(given), "at least 1")
    return default if given is None else given


def write_synthetic(
    destination: str | os.PathLike[str],
    preset: str | SynthPreset = "full",
    force: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Write a synthetic checkpoint; memory use does not depend on its size.

    Args:
        destination: the ``.safetensors`` file to write.
        preset: a key of :data:`PRESETS`, or sizes of one's own.
        force: whether an existing file may be replaced.
        progress: called now and then with (bytes written, bytes in all).

    Returns:
        The size of the file in bytes.

    Raises:
        SettingError: an unknown preset.
        OutputExistsError: ``destination`` exists and ``force`` is false.

    """
    if isinstance(preset, str):
        if preset not in PRESETS:
            raise SettingError("preset", preset, " or ".join(PRESETS))
        preset = PRESETS[preset]
    tensors = dict(sorted(plan_tensors(preset).items()))
    header = build_header(((name, "F32", tensor.shape) for name, tensor in tensors.items()), _metadata(preset))
    total = len(header) + sum(4 * tensor.elements for tensor in tensors.values())
    with atomic_output(destination, replace=force, error=CheckpointError) as temporary, temporary.open("wb") as file:
        done = file.write(header)
        for tensor in tensors.values():
            for start in range(0, tensor.elements, CHUNK_ELEMENTS):
                values = tensor.values(start, min(CHUNK_ELEMENTS, tensor.elements - start))
                done += file.write(np.ascontiguousarray(values, dtype="<f4").data)
            if progress is not None:
                progress(done, total)
    return total


def _metadata(preset: SynthPreset) -> dict[str, str]:
    metadata = {"generator": "mimi-synth-1"}
    if preset.name != "full":
        metadata["geometry"] = json.dumps(_geometry(preset), separators=(",", ":"))
    return metadata


def _geometry(preset: SynthPreset) -> dict[str, Any]:
    """Return what the converter cannot see in shapes, in the form trained checkpoints carry it."""
    return {
        "model": f"mimi-synth-{preset.name}",
        "sample_rate": 24000,
        "frame_rate": 12.5,
        "seanet": {"n_filters": preset.filters, "dimension": preset.dim, "ratios": list(RATIOS)},
        "transformer": {
            "d_model": preset.dim,
            "num_heads": preset.heads,
            "num_layers": preset.layers,
            "dim_feedforward": preset.mlp_width,
            "context": preset.context_steps,
            "max_period": 10000,
        },
        "quantizer": {
            "n_q": preset.default_levels,
            "n_q_semantic": 1,
            "bins": preset.entries,
            "codebook_dim": preset.codebook_dim,
        },
    }
