"""``convert_language_model``: weights, configuration and text tokenizer of a Moshi language model into one file."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from codec_core import __version__
from codec_core.atomic_file import atomic_output, require_other_file
from codec_core.convert.converter import weights_file
from codec_core.convert.gguf_layout import GGUF_MAGIC
from codec_core.convert.gguf_writer import Metadata, payload_bytes, write_gguf
from codec_core.convert.lm_config import CONFIG_NAME, MOSHI_7B, LmConfig, load_config
from codec_core.convert.lm_plan import LmPlan, plan_checkpoint, plan_enriched, plan_raw
from codec_core.convert.lm_quantise import LM_QUANTISATIONS, quantise_tensors
from codec_core.convert.lm_source import KEPT, LM_DTYPES
from codec_core.convert.progress import Metre
from codec_core.convert.quantise import Quantisation, QuantisedTensor
from codec_core.convert.source_file import SourceFile
from codec_core.convert.tokenizer_source import TokenizerSource, read_tokenizer_source
from codec_core.errors import CheckpointError, ModelAccessError, SettingError
from codec_core.gguf_file import GgufFile, check_language_model, moshi_component
from codec_core.safetensors_file import read_header
from codec_core.tokenizer_keys import tokenizer_metadata

NO_TOKENIZER: Final = "none"
"""In place of a tokenizer's path: the file shall have none."""


@dataclass(frozen=True)
class LanguageModelReport:
    """What a conversion did."""

    component: str
    """"lm"."""
    source: str
    source_kind: str
    source_sha256: str
    config_sha256: str | None
    """Of the ``config.json`` that was read; None: none was."""
    tokenizer_sha256: str | None
    """Of the ``.model`` that was read; None: none was."""
    destination: str
    name: str
    types: dict[str, int]
    """Bytes in the file by element type."""
    tokenizer_pieces: int
    """0: it has no tokenizer."""
    tensors: int
    unchanged_tensors: int
    """Tensors whose bytes are those of the source."""
    quantised: tuple[QuantisedTensor, ...] = ()
    """What became blocks, and how far that moved it."""


def convert_language_model(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    *,
    dtype: str | None = None,
    quantize: str | None = None,
    config: str | os.PathLike[str] | None = None,
    tokenizer: str | os.PathLike[str] | None = None,
    name: str | None = None,
    force: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> LanguageModelReport:
    """Convert a Moshi language model to the GGUF file the engine reads.

    The destination appears whole, after the engine has accepted it, or not at all. The same source and settings give the same
    bytes. Memory use is bounded by a few MB, whatever the size of the source.

    Args:
        source: Kyutai's checkpoint (``.safetensors``, or the directory with its ``model.safetensors``); a raw GGUF of
            moshi.cpp; or a GGUF with metadata, which keeps what it says. Told apart by content.
        destination: the ``.gguf`` file to write.
        dtype: "f32", "f16" or "bf16" for all but norms and conditions, which are f32; "keep" or None: each tensor's own. What
            is q8_0, q4_0 or q4_k stays as it is.
        quantize: "q8_0", "q4_k" or "q4_0" for the matrices, in blocks of that type; tables and heads are then q8_0. Rows that
            are no whole blocks of q4_k become q4_0, those that are no whole blocks at all stay, as do norms, conditions and
            extra heads, of which ``dtype`` speaks. None: as ``dtype`` says.
        config: the ``config.json``; None: the one beside the source; "moshi-7b": that of moshiko and moshika, which were
            published without. Not for a GGUF with metadata.
        tokenizer: SentencePiece's ``.model``; None: the one the configuration names, beside the source, or what a GGUF with
            metadata has; "none": the file shall have no tokenizer.
        name: ``general.name`` of the output; None: the source's own, else the name of its file or directory.
        force: whether an existing ``destination`` may be replaced.
        progress: called now and then with (bytes done, bytes in all).

    Raises:
        SettingError: a setting outside these values.
        ModelAccessError: a source cannot be read, or the destination not written.
        CheckpointError: weights, configuration or tokenizer are damaged, do not fit together or are something else; or
            ``destination`` is the source.
        ModelFormatError, ModelContractError: a GGUF source, or what came out, is no language model the engine runs.
        UnavailableError: a tokenizer is to be read, and the sentencepiece library is not installed.
        OutputExistsError: ``destination`` exists and ``force`` is false.

    """
    if dtype is not None and dtype not in LM_DTYPES:
        raise SettingError("dtype", dtype, " or ".join(LM_DTYPES))
    if quantize is not None and quantize not in LM_QUANTISATIONS:
        raise SettingError("quantize", quantize, " or ".join(LM_QUANTISATIONS))
    weights = weights_file(source)
    require_other_file(weights, destination, error=CheckpointError)
    with SourceFile(weights) as file, atomic_output(destination, replace=force, error=ModelAccessError) as temporary:
        quantisation = Quantisation()
        plan = _read(file, config, dtype or KEPT)
        if quantize is not None:
            plan = dataclasses.replace(plan, tensors=quantise_tensors(plan.tensors, quantize, quantisation))
        words = _tokenizer(file, plan, tokenizer)
        metre = Metre(file.size_bytes + payload_bytes(plan.tensors), progress)
        report = dataclasses.replace(
            _report(file, plan, words, os.fspath(destination), name), source_sha256=file.sha256(metre.advance)
        )
        write_gguf(temporary, _metadata(plan, words, tokenizer, report), plan.tensors, metre.advance)
        file.require_unchanged()
        check_language_model(GgufFile(temporary))
    return dataclasses.replace(report, quantised=tuple(quantisation.report()))


def _read(file: SourceFile, config: str | os.PathLike[str] | None, dtype: str) -> LmPlan:
    if file.read(0, min(4, file.size_bytes)) != GGUF_MAGIC:
        header = read_header(file.read, file.size_bytes, error=CheckpointError, subject=file.path)
        return plan_checkpoint(file, header, _config(file, config), dtype)
    opened = GgufFile(file.path)
    # The engine's reader goes by the path: what it saw must be the file that is open.
    file.require_unchanged()
    if moshi_component(opened) == "":
        return plan_raw(file, opened, _config(file, config), dtype)
    if config is not None:
        raise SettingError("config", os.fspath(config), "none: the file has its configuration in it")
    return plan_enriched(file, opened, dtype)


def _config(file: SourceFile, config: str | os.PathLike[str] | None) -> LmConfig:
    if config is not None:
        return load_config(Path(config))
    beside = Path(file.path).absolute().with_name(CONFIG_NAME)
    if not beside.exists():
        expected = f"the configuration of the model: --config FILE, or --config {MOSHI_7B} for moshiko and moshika"
        raise CheckpointError(str(beside), "no such file", expected)
    return load_config(beside)


def _tokenizer(file: SourceFile, plan: LmPlan, tokenizer: str | os.PathLike[str] | None) -> TokenizerSource | None:
    """Read the tokenizer that is to be embedded anew; None where there is none, or the source's own is kept."""
    if tokenizer is not None and os.fspath(tokenizer) == NO_TOKENIZER:
        return None
    if tokenizer is None and plan.tokenizer_name is None:
        return None
    path = Path(file.path).absolute().with_name(plan.tokenizer_name or "") if tokenizer is None else Path(tokenizer)
    if tokenizer is None and not path.exists():
        expected = f"the text tokenizer: --tokenizer FILE.model, or --tokenizer {NO_TOKENIZER} for a file without one"
        raise CheckpointError(str(path), "no such file", expected)
    words = read_tokenizer_source(path)
    if len(words.model.pieces) > plan.text_card:
        found = f"{len(words.model.pieces)} pieces"
        raise CheckpointError(f"{path}", found, f"at most {plan.text_card}, the model's text_card")
    return words


def _report(
    file: SourceFile, plan: LmPlan, words: TokenizerSource | None, destination: str, name: str | None
) -> LanguageModelReport:
    types: dict[str, int] = {}
    for tensor in plan.tensors:
        types[tensor.written_type] = types.get(tensor.written_type, 0) + tensor.size_bytes
    path = Path(file.path).absolute()
    return LanguageModelReport(
        component="lm",
        source=file.path,
        source_kind=plan.kind,
        source_sha256="",
        config_sha256=plan.config_sha256,
        tokenizer_sha256=None if words is None else words.sha256,
        destination=destination,
        name=name or plan.name or (path.parent.name if path.stem == "model" else "") or path.stem,
        types=dict(sorted(types.items())),
        tokenizer_pieces=0 if words is None else len(words.model.pieces),
        tensors=len(plan.tensors),
        unchanged_tensors=sum(tensor.is_unchanged for tensor in plan.tensors),
    )


def _metadata(
    plan: LmPlan, words: TokenizerSource | None, tokenizer: str | os.PathLike[str] | None, report: LanguageModelReport
) -> Metadata:
    kept: Metadata = plan.tokenizer if tokenizer is None else []
    provenance: Metadata = [
        ("moshi.lm.config_sha256", report.config_sha256 or ""),
        ("moshi.lm.source_sha256", report.source_sha256),
        ("moshi.lm.converter", f"mimi-server {__version__}"),
        ("tokenizer.sentencepiece.sha256", report.tokenizer_sha256 or ""),
    ]
    return [
        ("general.architecture", "moshi"),
        ("general.name", report.name),
        *sorted(plan.kept_texts.items()),
        ("moshi.component", "lm"),
        *plan.metadata,
        *(kept if words is None else tokenizer_metadata(words.model)),
        *(pair for pair in provenance if pair[1]),
    ]
