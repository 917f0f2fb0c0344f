"""Which type each tensor of a language model becomes under a weight class."""

from __future__ import annotations

import re
from typing import Final

from codec_core.convert.element_types import BLOCK_ELEMENTS
from codec_core.convert.lm_names import PREFIX, keeps_f32
from codec_core.convert.planned_model import PlannedTensor
from codec_core.convert.quantise import Quantisation

LM_QUANTISATIONS: Final = ("q8_0", "q4_k", "q4_0")
_FINE: Final = "q8_0"
_FINE_NAMES: Final = re.compile(
    r"(?:text_emb|emb\.\d+|depformer_text_emb|depformer_emb\.\d+)\.|(?:text_linear|linears\.\d+)\.weight"
)
"""Tables, and what is behind them, and the heads: their error meets every token at once, and they are few bytes of a step."""
_WHOLE_NAMES: Final = re.compile(r"extra_heads\.\d+\.weight")
"""A few rows each."""


def quantised_type(name: str, row_elements: int, weight_class: str) -> str | None:
    """Return the type of a tensor; None: it stays as it is.

    Args:
        name: ours, without ``lm.``.
        row_elements: values of a row.
        weight_class: one of :data:`LM_QUANTISATIONS`.

    Rows that are no whole blocks of q4_k become q4_0; rows that are no whole blocks of that stay.

    """
    if keeps_f32(name) or _WHOLE_NAMES.fullmatch(name):
        return None
    wanted = _FINE if _FINE_NAMES.match(name) else weight_class
    for type_name in (wanted, "q4_0"):
        if row_elements % BLOCK_ELEMENTS[type_name] == 0:
            return type_name
    return None


def quantise_tensors(tensors: list[PlannedTensor], weight_class: str, quantisation: Quantisation) -> list[PlannedTensor]:
    """Plan tensors under a weight class; what is in blocks already stays byte for byte."""

    def planned(tensor: PlannedTensor) -> PlannedTensor:
        type_name = quantised_type(tensor.name.removeprefix(PREFIX), tensor.dims[0], weight_class)
        if type_name is None or BLOCK_ELEMENTS[tensor.stored_type] > 1:
            return tensor
        return quantisation.quantised(tensor, type_name)

    return [planned(tensor) for tensor in tensors]
