"""Deterministic synthetic checkpoints in the form Kyutai publishes: for tests, benchmarks and golden vectors.

A preset's file has the same bytes on any machine. Codes vary with the input, but nothing was trained.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
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
}
"""``full`` has the sizes of Mimi v0.1, ``mini`` those of the embedded default, ``tiny`` runs in no time."""


def write_synthetic(
    destination: str | os.PathLike[str],
    preset: str = "full",
    force: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Write a synthetic checkpoint; memory use does not depend on its size.

    Args:
        destination: the ``.safetensors`` file to write.
        preset: a key of :data:`PRESETS`.
        force: whether an existing file may be replaced.
        progress: called now and then with (bytes written, bytes in all).

    Returns:
        The size of the file in bytes.

    Raises:
        SettingError: an unknown preset.
        OutputExistsError: ``destination`` exists and ``force`` is false.

    """
    if preset not in PRESETS:
        raise SettingError("preset", preset, " or ".join(PRESETS))
    tensors = dict(sorted(plan_tensors(PRESETS[preset]).items()))
    header = build_header(((name, "F32", tensor.shape) for name, tensor in tensors.items()), _metadata(PRESETS[preset]))
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
