"""Kyutai's checkpoint in the form of the transformers library, which reads no other.

The reverse of what :mod:`codec_core.convert` does with such a directory, for comparing on the same weights.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from codec_core.errors import CheckpointError
from codec_core.safetensors_file import SafetensorsHeader, build_header, read_header

Values = npt.NDArray[np.generic]

_WORDS: Final = (
    ("_transformer.transformer.", "_transformer."),
    ("coder.model.", "coder.layers."),
    (".conv.conv.conv.", ".conv."),
    (".convtr.convtr.convtr.", ".conv."),
    (".conv.conv.", ".conv."),
    (".convtr.convtr.", ".conv."),
    ("rvq_first.vq.", "rvq_first."),
    ("rvq_rest.vq.", "rvq_rest."),
    ("rvq_first.", "semantic_residual_vector_quantizer."),
    ("rvq_rest.", "acoustic_residual_vector_quantizer."),
    ("._codebook._initialized", ".codebook.initialized"),
    ("._codebook.embedding_sum", ".codebook.embed_sum"),
    ("._codebook.", ".codebook."),
    (".linear1.", ".mlp.fc1."),
    (".linear2.", ".mlp.fc2."),
    (".self_attn.out_proj.", ".self_attn.o_proj."),
    (".norm1.", ".input_layernorm."),
    (".norm2.", ".post_attention_layernorm."),
    (".layer_scale_1.", ".self_attn_layer_scale."),
    (".layer_scale_2.", ".mlp_layer_scale."),
)
"""Kyutai's words and those of transformers, applied from top to bottom."""
_FUSED: Final = "in_proj_weight"
_DTYPES: Final = {"F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "u1", "BOOL": "?"}


def write_transformers_form(checkpoint: Path, geometry: dict[str, Any], folder: Path) -> None:
    """Write ``model.safetensors`` and ``config.json``.

    Args:
        checkpoint: Kyutai's ``.safetensors``.
        geometry: what ``_ext.inspect_model`` says of the model converted from it.
        folder: an existing directory.

    Raises:
        CheckpointError: not a safetensors file, or of an element type that is not taken.

    """
    header = _read_header(checkpoint)
    heads = geometry["encoder_transformer"]["heads"]
    tensors = dict(_renamed(checkpoint, header, heads))
    types = {dtype: name for name, dtype in _DTYPES.items()}
    rows = [(name, types[values.dtype.str.lstrip("|").replace("b1", "?")], values.shape) for name, values in tensors.items()]
    with (folder / "model.safetensors").open("wb") as file:
        file.write(build_header(rows, {"format": "pt"}))
        for values in tensors.values():
            file.write(np.ascontiguousarray(values).tobytes())
    (folder / "config.json").write_text(json.dumps(_config(geometry), indent=2), encoding="utf-8")


def _read_header(checkpoint: Path) -> SafetensorsHeader:
    with checkpoint.open("rb") as file:

        def read(offset: int, size: int) -> bytes:
            file.seek(offset)
            return file.read(size)

        return read_header(read, checkpoint.stat().st_size, error=CheckpointError, subject=str(checkpoint))


def _renamed(checkpoint: Path, header: SafetensorsHeader, heads: int) -> Iterator[tuple[str, Values]]:
    for stored in header.tensors.values():
        if stored.dtype not in _DTYPES:
            raise CheckpointError(f"{checkpoint}: {stored.name}", stored.dtype, " or ".join(_DTYPES))
        values: Values = np.memmap(checkpoint, _DTYPES[stored.dtype], "r", stored.offset_bytes, stored.shape or (1,))
        values = values.reshape(stored.shape)
        name = functools.reduce(lambda text, words: text.replace(*words), _WORDS, stored.name)
        if name.endswith(_FUSED):
            stem = name.removesuffix(_FUSED)
            query, key, value = np.split(values, 3)
            yield f"{stem}q_proj.weight", _half_split(query, heads)
            yield f"{stem}k_proj.weight", _half_split(key, heads)
            yield f"{stem}v_proj.weight", value
        else:
            yield name, values


def _half_split(rows: Values, heads: int) -> Values:
    """Put the even rows of each head before its odd rows: transformers' rotary pairs are row i and row i + half."""
    return np.concatenate([np.concatenate([head[0::2], head[1::2]]) for head in np.split(rows, heads)])


def _config(geometry: dict[str, Any]) -> dict[str, Any]:
    transformer, rvq = geometry["encoder_transformer"], geometry["rvq"]
    return {
        "architectures": ["MimiModel"],
        "model_type": "mimi",
        "sampling_rate": geometry["sample_rate_hz"],
        "num_filters": geometry["encoder"]["first"]["out_channels"],
        "hidden_size": transformer["dim"],
        "upsample_groups": transformer["dim"],
        "num_hidden_layers": transformer["layers"],
        "num_attention_heads": transformer["heads"],
        "num_key_value_heads": transformer["heads"],
        "head_dim": transformer["head_dim"],
        "intermediate_size": transformer["mlp_width"],
        "sliding_window": transformer["context_steps"],
        "rope_theta": transformer["max_period"],
        "codebook_size": rvq["codebook_entries"],
        "codebook_dim": rvq["codebook_dim"],
        "vector_quantization_hidden_dimension": rvq["codebook_dim"],
        "num_quantizers": rvq["levels"],
        "num_semantic_quantizers": rvq["semantic_levels"],
    }
