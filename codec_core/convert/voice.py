"""``convert_voice_prompt``: a voice prompt of PersonaPlex, raw as moshi.cpp has it or as two tensors in safetensors."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from codec_core import __version__
from codec_core.atomic_file import atomic_output, require_other_file
from codec_core.convert.gguf_layout import GGUF_MAGIC
from codec_core.convert.gguf_writer import Metadata, payload_bytes, write_gguf
from codec_core.convert.planned_model import PlannedTensor
from codec_core.convert.progress import Metre
from codec_core.convert.source_file import SourceFile
from codec_core.errors import CheckpointError, ModelAccessError
from codec_core.gguf_file import GgufFile
from codec_core.safetensors_file import StoredTensor, read_header, shown
from codec_core.voice_prompt import CACHE, EMBEDDINGS, VoicePrompt, check_tokens, check_voice

_PUBLISHED: Final = {"embeddings": EMBEDDINGS, "cache": CACHE}
"""Names in NVIDIA's files."""
_TYPES: Final = {EMBEDDINGS: {"F32": "f32", "F16": "f16", "BF16": "bf16"}, CACHE: {"I32": "i32", "I64": "i64"}}

_SHAPES: Final = {EMBEDDINGS: "[steps, 1, 1, dim]", CACHE: "[1, channels, slots]"}
_FITS: Final[dict[str, Callable[[tuple[int, ...]], bool]]] = {
    EMBEDDINGS: lambda shape: 2 <= len(shape) <= 4 and all(size == 1 for size in shape[1:-1]),
    CACHE: lambda shape: len(shape) == 2 or (len(shape) == 3 and shape[0] == 1),
}
"""Whether a shape is one of those; ones may be left out."""


@dataclass(frozen=True)
class VoiceReport:
    """What a conversion did."""

    component: str
    """"voice"."""
    source: str
    source_kind: str
    source_sha256: str
    destination: str
    name: str
    dim: int
    steps: int
    channels: int
    slots: int


def convert_voice_prompt(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    *,
    name: str | None = None,
    force: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> VoiceReport:
    """Convert a voice prompt to a GGUF file with metadata. Atomic, as :func:`codec_core.convert.convert_model` is.

    Args:
        source: a GGUF, raw (``voice.embeddings``, ``voice.cache``) or with metadata; or a ``.safetensors`` with ``embeddings``
            [steps, 1, 1, dim] and ``cache`` [1, channels, slots]. Never a ``.pt``: loading one runs whatever it holds.
        destination: the ``.gguf`` file to write.
        name: ``general.name`` of the output; None: the source's own, else its file's.
        force: whether an existing ``destination`` may be replaced.
        progress: called now and then with (bytes done, bytes in all).

    Raises:
        ModelAccessError: the source cannot be read, or the destination not written.
        CheckpointError, ModelFormatError, ModelContractError: the source is no voice prompt.
        OutputExistsError: ``destination`` exists and ``force`` is false.

    """
    require_other_file(source, destination, error=CheckpointError)
    with SourceFile(source) as file, atomic_output(destination, replace=force, error=ModelAccessError) as temporary:
        kind, own_name, tensors = _read(file)
        metre = Metre(file.size_bytes + payload_bytes(tensors), progress)
        sizes = {tensor.name: tensor.dims for tensor in tensors}
        report = VoiceReport(
            component="voice",
            source=file.path,
            source_kind=kind,
            source_sha256=file.sha256(metre.advance),
            destination=os.fspath(destination),
            name=name or own_name or Path(file.path).stem,
            dim=sizes[EMBEDDINGS][0],
            steps=math.prod(sizes[EMBEDDINGS][1:]),
            channels=sizes[CACHE][1],
            slots=sizes[CACHE][0],
        )
        write_gguf(temporary, _metadata(report), tensors, metre.advance)
        file.require_unchanged()
        VoicePrompt.open(temporary)
    return report


def _read(file: SourceFile) -> tuple[str, str | None, list[PlannedTensor]]:
    """Return the source's kind, the name it has for itself, and its tensors."""
    if file.read(0, min(4, file.size_bytes)) == GGUF_MAGIC:
        opened = GgufFile(file.path)
        file.require_unchanged()
        check_voice(opened)
        stored = [opened.tensors[name] for name in (EMBEDDINGS, CACHE)]
        tensors = [
            PlannedTensor(
                tensor.name, tensor.dims, tensor.type, _pieces(file, tensor.offset_bytes, tensor.size_bytes), tensor.type
            )
            for tensor in stored
        ]
        return "GGUF with metadata" if opened.metadata else "raw GGUF", opened.text("general.name"), tensors
    header = read_header(file.read, file.size_bytes, error=CheckpointError, subject=file.path)
    for name in header.tensors:
        if name not in _PUBLISHED:
            raise CheckpointError(f"tensor {shown(name)}", "a tensor a voice prompt has no use for", " and ".join(_PUBLISHED))
    return "safetensors", None, [_planned(file, header.tensors.get(name), name) for name in _PUBLISHED]


def _pieces(file: SourceFile, offset_bytes: int, size_bytes: int) -> Callable[[], Iterator[bytes]]:
    return functools.partial(file.pieces, offset_bytes, size_bytes, 8)


def _planned(file: SourceFile, stored: StoredTensor | None, published: str) -> PlannedTensor:
    name = _PUBLISHED[published]
    if stored is None:
        raise CheckpointError(f"tensor {shown(published)}", "no such tensor", " and ".join(_PUBLISHED))
    kind = _TYPES[name].get(stored.dtype)
    if kind is None:
        raise CheckpointError(f"tensor {shown(published)}", stored.dtype, " or ".join(_TYPES[name]))
    if 0 in stored.shape or not _FITS[name](stored.shape):
        raise CheckpointError(f"tensor {shown(published)}: shape", f"{list(stored.shape)}", _SHAPES[name])
    if name == EMBEDDINGS:
        dims = (stored.shape[-1], 1, 1, stored.shape[0])
        return PlannedTensor(name, dims, kind, _pieces(file, stored.offset_bytes, stored.size_bytes), kind)
    read = functools.partial(_tokens, file, stored, kind)
    return PlannedTensor(name, (stored.shape[-1], stored.shape[-2]), "i32", read, "i32", is_computed=kind != "i32")


def _tokens(file: SourceFile, stored: StoredTensor, kind: str) -> Iterator[bytes]:
    """Yield the ring in 32 bits."""
    tokens = np.frombuffer(file.read(stored.offset_bytes, stored.size_bytes), "<i4" if kind == "i32" else "<i8")
    check_tokens(tokens.reshape(stored.shape[-2:]))
    yield tokens.astype("<i4").tobytes()


def _metadata(report: VoiceReport) -> Metadata:
    return [
        ("general.architecture", "moshi"),
        ("general.name", report.name),
        ("moshi.component", report.component),
        ("moshi.voice.dim", report.dim),
        ("moshi.voice.steps", report.steps),
        ("moshi.voice.channels", report.channels),
        ("moshi.voice.slots", report.slots),
        ("moshi.voice.source_sha256", report.source_sha256),
        ("moshi.voice.converter", f"mimi-server {__version__}"),
    ]
