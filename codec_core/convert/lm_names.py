"""Tensor names of Kyutai's language models to ours: ``lm.`` and the published name, attention cut into its weight sets.

GGUF files of Moshi have always been written so. Checkpoints have the attention of all weight sets in one tensor, or, as the
present code of Kyutai's saves it, one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from codec_core import _ext
from codec_core.errors import CheckpointError
from codec_core.safetensors_file import shown

PREFIX: Final = "lm."
_LAYER: Final = r"(?:transformer|depformer)\.layers\.\d+\."
_CROSS: Final = r"transformer\.layers\.\d+\."
_CONDITIONER: Final = r"condition_provider\.conditioners\.[\w-]+\."
_VECTORS: Final = (
    r"out_norm\.alpha",
    _LAYER + r"norm[12]\.alpha",
    _CROSS + r"norm_cross\.(?:weight|bias)",
    r"depformer_norms\.\d+\.(?:weight|bias)",
    _CONDITIONER + r"learnt_padding",
)
"""Their shapes may have leading ones, which are dropped."""
_MATRICES: Final = (
    r"emb\.\d+\.weight",
    r"text_emb\.(?:out[12]\.)?weight",
    r"text_linear\.weight",
    _LAYER + r"self_attn\.(?:in|out)_projs\.\d+\.weight",
    _CROSS + r"cross_attention\.(?:in|out)_projs\.0\.weight",
    _LAYER + r"gating\.(?:\d+\.)?linear_(?:in|out)\.weight",
    r"depformer_in\.\d+\.weight",
    r"depformer_(?:text_emb|emb\.\d+)\.(?:low_rank\.)?weight",
    r"depformer_text_emb\.out[12]\.weight",
    r"linears\.\d+\.weight",
    r"extra_heads\.\d+\.weight",
    _CONDITIONER + r"(?:embed|output_proj)\.weight",
)
_FUSED: Final = (
    rf"({_LAYER}self_attn\.|{_CROSS}cross_attention\.)(in)_proj(?:_|\.)weight",
    rf"({_LAYER}self_attn\.|{_CROSS}cross_attention\.)(out)_proj\.weight",
)
_FAMILIES: Final = (
    "emb",
    "text_emb",
    "condition_provider",
    "transformer",
    "out_norm",
    "text_linear",
    "extra_heads",
    "depformer_in",
    "depformer_text_emb",
    "depformer_emb",
    "depformer",
    "depformer_norms",
    "linears",
)
"""In the order a step needs them."""
_CONDITIONER_SUFFIXES: Final = ("embed.weight", "output_proj.weight", "learnt_padding")
_SHORT: Final = re.compile("[0-9a-f]{8}")
_NUMBER: Final = re.compile("[0-9]{1,9}")
"""Whatever else a pattern takes for digits is no number of a tensor."""


@dataclass(frozen=True)
class PublishedName:
    """What a published name says of its tensor."""

    name: str
    """Without ``lm.``; of a fused attention, ours up to the number of its weight set."""
    is_vector: bool = False
    fused: str = ""
    """"in" or "out": rows of all weight sets of an attention."""


def published_name(name: str) -> PublishedName:
    """Return what a name, without ``lm.``, says.

    Raises:
        CheckpointError: no rule knows it; or it belongs to a form of weights that is not converted, saying what to do.

    """
    if name.endswith("_scb"):
        expected = "weights as they were before: convert the checkpoint in bf16"
        raise CheckpointError(f"tensor {shown(name)}", "the row scales of a checkpoint in int8", expected)
    if ".lora_A." in name or ".lora_B." in name:
        expected = "whole weights: merge them into their checkpoint first (W + scaling * B * A)"
        raise CheckpointError(f"tensor {shown(name)}", "an addition to the weights of another checkpoint (LoRA)", expected)
    for pattern in _FUSED:
        if match := re.fullmatch(pattern, name):
            return PublishedName(f"{match[1]}{match[2]}_projs", fused=match[2])
    if any(re.fullmatch(pattern, name) for pattern in _VECTORS):
        return PublishedName(name, is_vector=True)
    if any(re.fullmatch(pattern, name) for pattern in _MATRICES):
        return PublishedName(name)
    raise CheckpointError(f"tensor {shown(name)}", "a name no rule knows", "the tensors of a Moshi language model")


def keeps_f32(name: str) -> bool:
    """Tell whether a tensor (without ``lm.``) is f32 whatever the others are: norms and conditions."""
    return name.startswith("condition_provider.") or any(re.fullmatch(pattern, name) for pattern in _VECTORS)


def in_order(name: str) -> tuple[int, tuple[tuple[int, str], ...]]:
    """Return what tensors (without ``lm.``) are sorted by: their families as a step needs them, numbers by their value."""
    family = name.split(".", 1)[0]
    parts = tuple((int(part), "") if _NUMBER.fullmatch(part) else (-1, part) for part in name.split("."))
    return _FAMILIES.index(family), parts


def long_names(conditioners: Iterable[str]) -> list[str]:
    """Return all names with ``lm.`` that moshi.cpp would shorten, of a model with these conditioners: no other is so long."""
    names = [
        f"{PREFIX}condition_provider.conditioners.{name}.{suffix}" for name in conditioners for suffix in _CONDITIONER_SUFFIXES
    ]
    return [name for name in names if _ext.mangled_name(name) != name]


def restored_name(stored: str, candidates: Iterable[str]) -> str:
    """Return the full name of a tensor of a raw file.

    Args:
        stored: as the file has it.
        candidates: the names that may have been shortened.

    Raises:
        CheckpointError: a short form that none of them has, or more than one.

    """
    if stored.startswith(PREFIX) or not _SHORT.fullmatch(stored):
        return stored
    found = [name for name in candidates if _ext.mangled_name(name) == stored]
    if len(found) != 1:
        what = f"the short form of both {shown(found[0])} and {shown(found[1])}" if found else "the short form of no name"
        expected = "one name of this config's; convert the original checkpoint instead"
        raise CheckpointError(f"tensor {shown(stored)}", what, expected)
    return found[0]
