"""Which part of Moshi a source is: the codec, the language model, or a voice prompt for it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from codec_core.convert.converter import weights_file
from codec_core.convert.gguf_layout import GGUF_MAGIC
from codec_core.convert.source_file import SourceFile
from codec_core.errors import CheckpointError
from codec_core.gguf_file import GgufFile, moshi_component
from codec_core.safetensors_file import read_header

COMPONENTS: Final = ("mimi", "lm", "voice")
_LM_MARKS: Final = ("text_emb.", "text_linear.", "transformer.layers.", "depformer", "emb.", "lm.")


def component_of(source: str | os.PathLike[str]) -> str:
    """Return the component of a source, by its metadata or else by the names of its tensors.

    Args:
        source: a model file or a checkpoint, or the directory of one.

    Returns:
        One of :data:`COMPONENTS`; "mimi" also for what is none of them, of which the codec's converter says best what is wrong.

    Raises:
        ModelAccessError, ModelFormatError, ModelContractError, CheckpointError: it cannot be read.

    """
    with SourceFile(weights_file(source)) as file:
        head = file.read(0, min(9, file.size_bytes))
        if head.startswith(GGUF_MAGIC):
            opened = GgufFile(file.path)
            stated = moshi_component(opened)
            return stated if stated in COMPONENTS else _by_names(opened.tensors)
        if head[8:9] != b"{":
            return COMPONENTS[0]
        return _by_names(read_header(file.read, file.size_bytes, error=CheckpointError, subject=file.path).tensors)


def _by_names(names: Iterable[str]) -> str:
    found = set(names)
    if {"embeddings", "cache"} & found or any(name.startswith("voice.") for name in found):
        return "voice"
    if any(name.startswith(_LM_MARKS) for name in found):
        return "lm"
    return COMPONENTS[0]
