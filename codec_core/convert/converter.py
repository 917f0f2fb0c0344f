"""``convert_model``: read a source, plan, write, check with the engine's own eyes, publish."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from codec_core import __version__, _ext
from codec_core.atomic_file import atomic_output, require_other_file
from codec_core.convert.gguf_layout import GGUF_MAGIC
from codec_core.convert.gguf_source import read_gguf
from codec_core.convert.gguf_writer import Metadata, payload_bytes, write_gguf
from codec_core.convert.kyutai_checkpoint import read_kyutai
from codec_core.convert.name_map import is_wide_matrix, require_codec
from codec_core.convert.planned_model import CODEBOOK, PlannedModel
from codec_core.convert.progress import Metre
from codec_core.convert.quantise import QUANTISED, Quantisation, QuantisedTensor
from codec_core.convert.raw_form import RAW_NUMERICS, raw_levels, raw_tensors, require_raw_says_it
from codec_core.convert.source_file import SourceFile
from codec_core.convert.transformers_checkpoint import read_transformers, weights_in
from codec_core.convert.transformers_names import is_transformers_naming
from codec_core.errors import CheckpointError, ModelAccessError, SettingError
from codec_core.safetensors_file import read_header

DTYPES: Final = ("f32", "f16")
QUANTISATIONS: Final = (QUANTISED,)
NUMERICS: Final = ("kyutai", "ggml")
FORMS: Final = ("enriched", "raw")
_FIRST_CODEBOOK: Final = f"mimi.quantizer.rvq_first.vq.layers.0{CODEBOOK}"
_FIRST_CONV: Final = "mimi.encoder.model.0.conv.conv.weight"
_FIRST_NORM: Final = "mimi.encoder_transformer.transformer.layers.0.norm1.weight"


@dataclass(frozen=True)
class ConversionReport:
    """What a conversion did."""

    source: str
    source_kind: str
    source_sha256: str
    config_sha256: str | None
    """Of the ``config.json`` that was read with it; None: none was."""
    destination: str
    form: str
    name: str
    """In the file's metadata; a raw file has none."""
    weight_class: str
    numerics: str
    levels: int
    """In the file."""
    default_levels: int
    """Used where a session names no number."""
    tensors: int
    unchanged_tensors: int
    """Tensors whose bytes are those of the source."""
    quantised: tuple[QuantisedTensor, ...] = ()
    """What became q8_0, and how far that moved it."""


def convert_model(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    *,
    dtype: str | None = None,
    quantize: str | None = None,
    codebooks: str | None = None,
    matrices: str | None = None,
    levels: int | None = None,
    numerics: str | None = None,
    form: str = "enriched",
    name: str | None = None,
    force: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> ConversionReport:
    """Convert a Mimi checkpoint to the GGUF file the engine reads.

    The destination appears whole, after the engine has accepted it, or not at all. The same source and settings give the same
    bytes. Memory use is bounded by a few MB, whatever the size of the source.

    Args:
        source: Kyutai's checkpoint (``.safetensors``, codebooks as sums and usages); one of the transformers library (the
            directory with ``model.safetensors`` and ``config.json``, or that ``.safetensors`` itself); a raw GGUF of
            moshi.cpp; or a GGUF that has metadata. Told apart by content, not by suffix.
        destination: the ``.gguf`` file to write.
        dtype: "f32", or "f16" for non-transposed convs and RVQ projections in half precision. None: f32 from a checkpoint,
            every tensor's own type from a GGUF; in the raw form always f16, as moshi.cpp has it. What is q8_0 stays q8_0.
        quantize: "q8_0" for the projections of transformers and RVQ in blocks of 32 signed bytes; ``dtype`` then says how the
            convs are stored. None: they are as ``dtype`` says.
        codebooks: "f16" for codebooks in half precision, beside convs of f16 only; "f32". None: f32, or from a GGUF whose types
            are kept, its own.
        matrices: "f16" for the transposed convs and the transformers' projections in half precision, likewise and not with
            ``quantize``; "f32". None: f32, or from a GGUF whose types are kept, its own. What is q8_0 stays q8_0.
        levels: RVQ levels a session uses unless it says otherwise; None: what the source says, else 8. All levels of the
            source are kept in the file.
        numerics: "kyutai" or "ggml", the arithmetic the file asks for; None: kyutai for a checkpoint, ggml for a raw GGUF,
            what it says itself for a GGUF with metadata.
        form: "enriched", or "raw" for the very form of moshi.cpp: no metadata, names of 64 characters or more shortened. A raw
            file states no ``levels``, ``numerics`` or geometry, and is taken to have 8 levels (or all, if fewer), ggml, 8
            heads, a context of 250 steps and a rotary period of 10000; a setting or source that says otherwise is refused.
        name: ``general.name`` of the output; None: the source's own, else the name of its file or directory.
        force: whether an existing ``destination`` may be replaced.
        progress: called now and then with (bytes done, bytes in all).

    Raises:
        SettingError: a setting outside these values.
        ModelAccessError: the source cannot be read, or the destination not written.
        CheckpointError: the source is damaged or is something else, or ``destination`` is that very file, ``force`` or not.
        ModelFormatError, ModelContractError: a GGUF source, or what came out, is no Mimi model the engine runs.
        OutputExistsError: ``destination`` exists and ``force`` is false.

    """
    _require("dtype", dtype, DTYPES)
    _require("quantize", quantize, QUANTISATIONS)
    _require("codebooks", codebooks, DTYPES)
    _require("matrices", matrices, DTYPES)
    _require("numerics", numerics, NUMERICS)
    _require("form", form, FORMS)
    dtype = dtype or ("f16" if form == "raw" else None)
    settings = _Settings(dtype, quantize, codebooks, matrices, levels, numerics, form, name)
    weights = weights_file(source)
    require_other_file(weights, destination, error=CheckpointError)
    with (
        SourceFile(weights) as file,
        atomic_output(destination, replace=force, error=ModelAccessError) as temporary,
    ):
        quantisation = Quantisation()
        plan = _with_families(_read(file, settings.dtype), settings)
        if settings.quantize is not None:
            plan = quantisation.apply(plan)
        report = _report(file, plan, os.fspath(destination), settings)
        metre = Metre(file.size_bytes + payload_bytes(plan.tensors), progress)
        report = dataclasses.replace(report, source_sha256=file.sha256(metre.advance))
        if form == "raw":
            write_gguf(temporary, [], raw_tensors(plan), metre.advance)
        else:
            write_gguf(temporary, _metadata(plan, report), plan.tensors, metre.advance)
        file.require_unchanged()
        _ext.inspect_model(os.fspath(temporary))
    return dataclasses.replace(report, quantised=tuple(quantisation.report()))


@dataclass(frozen=True)
class _Settings:
    """The caller's settings, checked as far as they can be without the source."""

    dtype: str | None
    quantize: str | None
    codebooks: str | None
    matrices: str | None
    levels: int | None
    numerics: str | None
    form: str
    name: str | None


def _require(name: str, value: str | None, legal: tuple[str, ...]) -> None:
    if value is not None and value not in legal:
        raise SettingError(name, value, " or ".join(legal))


def _with_families(plan: PlannedModel, settings: _Settings) -> PlannedModel:
    """Plan codebooks and matrices in the types that were asked for."""
    if settings.matrices == "f16" and settings.quantize is not None:
        raise SettingError("matrices", "f16", f"f32, or no quantize: it makes {settings.quantize} of the projections")
    for name, element_type, belongs in (
        ("codebooks", settings.codebooks, _is_codebook),
        ("matrices", settings.matrices, is_wide_matrix),
    ):
        if element_type is None:
            continue
        if element_type == "f16" and (settings.form == "raw" or plan.tensor(_FIRST_CONV).written_type != "f16"):
            raise SettingError(name, "f16", 'f32, or dtype "f16" besides, in the enriched form')
        plan = plan.retyped(element_type, belongs)
    return plan


def _is_codebook(name: str) -> bool:
    return name.endswith(CODEBOOK)


def weights_file(source: str | os.PathLike[str]) -> Path:
    """Return the file a source's weights are in: itself, or the ``model.safetensors`` in a directory.

    Raises:
        CheckpointError: a directory without one.

    """
    path = Path(source)
    return weights_in(path) if path.is_dir() else path


def _read(file: SourceFile, dtype: str | None) -> PlannedModel:
    """Tell the source's form by its first bytes. A safetensors file has the first brace of its header at byte 8."""
    head = file.read(0, min(9, file.size_bytes))
    if head.startswith(GGUF_MAGIC):
        return read_gguf(file, dtype)
    if head[8:9] == b"{":
        return _read_checkpoint(file, dtype or "f32")
    expected = "a checkpoint of Mimi (.safetensors), or a GGUF file of Mimi"
    if head.startswith(b"version "):
        raise CheckpointError(file.path, "a Git LFS pointer; fetch the file itself", expected)
    raise CheckpointError(file.path, f"a file that begins with {head!r}", expected)


def _read_checkpoint(file: SourceFile, weight_class: str) -> PlannedModel:
    header = read_header(file.read, file.size_bytes, error=CheckpointError, subject=file.path)
    require_codec(header.tensors)
    if is_transformers_naming(header.tensors):
        return read_transformers(file, header, weight_class)
    return read_kyutai(file, header, weight_class)


def _report(file: SourceFile, plan: PlannedModel, destination: str, settings: _Settings) -> ConversionReport:
    """Settle what the settings leave open; the source's SHA-256 is still to be filled in."""
    default_levels = _default_levels(plan, settings.levels)
    numerics = settings.numerics or plan.numerics
    if settings.form == "raw":
        require_raw_says_it(plan, settings.levels, settings.numerics)
        default_levels, numerics = raw_levels(plan), RAW_NUMERICS
    return ConversionReport(
        source=file.path,
        source_kind=plan.kind,
        source_sha256="",
        config_sha256=plan.config_sha256,
        destination=destination,
        form=settings.form,
        name=settings.name or plan.name or Path(file.path).stem,
        weight_class=plan.weight_class,
        numerics=numerics,
        levels=plan.levels,
        default_levels=default_levels,
        tensors=len(plan.tensors),
        unchanged_tensors=sum(tensor.is_unchanged for tensor in plan.tensors),
    )


def _default_levels(plan: PlannedModel, asked: int | None) -> int:
    if asked is not None and not 1 <= asked <= plan.levels:
        raise SettingError("levels", f"{asked}", f"1 .. {plan.levels}, the levels of the source")
    return asked or min(plan.default_levels, plan.levels)


def _metadata(plan: PlannedModel, report: ConversionReport) -> Metadata:
    width, entries = (*plan.tensor(_FIRST_CODEBOOK).dims, 1)[:2]
    return [
        ("general.architecture", "moshi"),
        ("general.name", report.name),
        *sorted(plan.kept_texts.items()),
        ("moshi.component", "mimi"),
        ("moshi.mimi.sample_rate", 24_000),
        ("moshi.mimi.frame_rate", 12.5),
        ("moshi.mimi.n_q", report.default_levels),
        ("moshi.mimi.card", entries),
        ("moshi.mimi.dim", plan.tensor(_FIRST_NORM).dims[0]),
        ("moshi.mimi.semantic_n_q", plan.count("mimi.quantizer.rvq_first.", CODEBOOK)),
        ("moshi.mimi.codebook_dim", width),
        ("moshi.mimi.transformer.num_layers", plan.count("mimi.encoder_transformer.", ".norm1.weight")),
        ("moshi.mimi.transformer.num_heads", plan.heads),
        ("moshi.mimi.transformer.context", plan.context_steps),
        ("moshi.mimi.transformer.max_period", plan.max_period),
        ("moshi.mimi.numerics", report.numerics),
        ("moshi.mimi.weight_class", report.weight_class),
        ("moshi.mimi.source_sha256", report.source_sha256),
        ("moshi.mimi.converter", f"mimi-server {__version__}"),
    ]
