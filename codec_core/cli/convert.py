"""Convert a checkpoint to the GGUF file the engine reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from codec_core.cli.options import ForceOption, JsonOption
from codec_core.cli.report import human_bytes, print_json, progress_bar
from codec_core.convert import ConversionReport, convert_model
from codec_core.convert.component import component_of
from codec_core.convert.language_model import LanguageModelReport, convert_language_model
from codec_core.convert.quantise import QuantisedTensor
from codec_core.convert.voice import VoiceReport, convert_voice_prompt
from codec_core.errors import SettingError

_SOURCE_HELP = (
    "Kyutai's checkpoint (.safetensors) of the codec or the language model; a codec of transformers (its directory, or its"
    " model.safetensors); a voice prompt; a GGUF of moshi.cpp or of ours."
)
_DTYPE_HELP = (
    "The codec: f32, or f16 (convs and RVQ projections); without it f32, a GGUF's own types, or f16 in the raw form."
    " A language model: f32, f16, bf16 or keep, all but norms and conditions; without it keep."
)

_QUANTIZE_HELP = (
    "The codec: q8_0, the projections of transformers and RVQ in a quarter of the room; --dtype f16 besides makes the smallest"
    " file. A language model: q8_0, q4_k or q4_0, its matrices."
)
_CODEBOOKS_HELP = "The codec's codebooks: f32, or f16 beside --dtype f16."
_MATRICES_HELP = "The codec's transposed convs and transformers' projections: f32, or f16 beside --dtype f16."

_FORM_HELP = (
    "enriched; or raw: moshi.cpp's own form, without metadata. Raw takes a model of 8 heads, context 250 and period 10000 only;"
    " name and default levels are not stored."
)
_CONFIG_HELP = (
    "A language model's config.json; without it, the one beside the source. moshi-7b: that of moshiko and moshika, published"
    " without."
)
_TOKENIZER_HELP = (
    "A language model's SentencePiece .model; without it, the one its config names, beside the source. none: no tokenizer."
    " Needs the extra lm."
)
_FORM = "enriched"


def command(
    source: Annotated[Path, typer.Argument(readable=False, help=_SOURCE_HELP)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The GGUF file to write.")],
    *,
    dtype: Annotated[str | None, typer.Option(help=_DTYPE_HELP)] = None,
    quantize: Annotated[str | None, typer.Option(help=_QUANTIZE_HELP)] = None,
    codebooks: Annotated[str | None, typer.Option(help=_CODEBOOKS_HELP)] = None,
    matrices: Annotated[str | None, typer.Option(help=_MATRICES_HELP)] = None,
    levels: Annotated[int | None, typer.Option(min=1, help="RVQ levels a session uses by default; all are kept.")] = None,
    numerics: Annotated[str | None, typer.Option(help="kyutai or ggml: the arithmetic the file asks for.")] = None,
    form: Annotated[str, typer.Option(help=_FORM_HELP)] = _FORM,
    config: Annotated[Path | None, typer.Option(help=_CONFIG_HELP)] = None,
    tokenizer: Annotated[Path | None, typer.Option(help=_TOKENIZER_HELP)] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Convert a checkpoint to the GGUF file the engine reads.

    Which part of Moshi it is (the codec, the language model, a voice prompt) is told by its tensors. The output is checked by
    the engine before it appears under its name.
    """
    component = component_of(source)
    codec_only: dict[str, Any] = {
        "codebooks": codebooks,
        "matrices": matrices,
        "levels": levels,
        "numerics": numerics,
        "form": None if form == _FORM else form,
    }
    lm_only: dict[str, Any] = {"config": config, "tokenizer": tokenizer}
    report: ConversionReport | LanguageModelReport | VoiceReport
    with progress_bar("converting") as progress:
        if component == "lm":
            _require_unset(codec_only, "a language model")
            settings = lm_only | {"dtype": dtype, "quantize": quantize}
            report = convert_language_model(source, output, **settings, force=force, progress=progress)
        elif component == "voice":
            _require_unset(codec_only | lm_only | {"dtype": dtype, "quantize": quantize}, "a voice prompt")
            report = convert_voice_prompt(source, output, force=force, progress=progress)
        else:
            _require_unset(lm_only, "the codec")
            settings = codec_only | {"dtype": dtype, "quantize": quantize, "form": form}
            report = convert_model(source, output, **settings, force=force, progress=progress)
    if as_json:
        print_json(dataclasses.asdict(report))
        return
    for line in _lines(report, output.stat().st_size):
        typer.echo(line)


def _require_unset(settings: dict[str, Any], what: str) -> None:
    for name, value in settings.items():
        if value is not None:
            raise SettingError(name, str(value), f"nothing: {what} has no such setting")


def _lines(report: ConversionReport | LanguageModelReport | VoiceReport, size_bytes: int) -> list[str]:
    size = human_bytes(size_bytes)
    source = f"from {report.source_kind} {report.source} (sha256 {report.source_sha256})"
    if isinstance(report, VoiceReport):
        shape = f"{report.steps} steps of {report.dim}, {report.channels} channels"
        return [f"{report.destination}: {report.name}, a voice prompt, {shape}, {size}", source]
    copied = f"{report.unchanged_tensors} of {report.tensors} tensors copied byte for byte"
    if isinstance(report, LanguageModelReport):
        types = ", ".join(report.types)
        words = f"{report.tokenizer_pieces} pieces of text" if report.tokenizer_pieces else "no text tokenizer"
        first = f"{report.destination}: {report.name}, a language model, {types}, {words}, {size}"
        return [first, source, copied, *_error_lines(report.quantised)]
    levels = f"{report.levels} levels ({report.default_levels} by default)"
    first = f"{report.destination}: {report.name}, {report.weight_class}, {report.numerics} numerics, {levels}, {size}"
    return [first, source, copied, *_error_lines(report.quantised)]


def _error_lines(quantised: Sequence[QuantisedTensor]) -> list[str]:
    lines = []
    for name in sorted({tensor.type for tensor in quantised}):
        tensors = [tensor for tensor in quantised if tensor.type == name]
        worst = max(tensors, key=lambda tensor: tensor.relative_rms)
        error = f"relative RMS error at most {worst.relative_rms:.2e}, of {worst.name}"
        lines.append(f"{len(tensors)} quantised to {name}; {error}")
    return lines
