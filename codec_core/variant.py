"""The same model opened otherwise: with other numerics, for another instruction set, with more or fewer threads."""

from __future__ import annotations

from dataclasses import replace

from codec_core import _ext
from codec_core.model import CodecModel
from codec_core.window import chosen_budget


def open_variant(model: CodecModel, *, numerics: str | None = None, isa: str = "", threads: int = 1) -> CodecModel:
    """Open the file of ``model`` again, under the RAM budget of ``MIMI_RAM_BUDGET`` where that is set.

    Args:
        model: an open model, which stays as it is.
        numerics: ``kyutai``, ``ggml`` or ``ggml-causal``; None: those of ``model``.
        isa: the instruction set; empty: the best this machine has.
        threads: threads one step may use, the caller's included.

    Raises:
        UnavailableError: this machine lacks the instruction set.
        SettingError: no such numerics.

    """
    native = _ext.CodecModel.open(model.info.path, numerics or model.info.numerics, isa, threads, chosen_budget(None))
    facts = replace(model.info, numerics=native.numerics, isa=native.isa, threads=native.threads)
    return CodecModel(native, replace(facts, weights_bytes=native.weights_bytes))
