"""Convert a checkpoint to the GGUF file the engine reads."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from codec_core.cli.options import ForceOption, JsonOption
from codec_core.cli.report import human_bytes, print_json, progress_bar
from codec_core.convert import convert_model

_SOURCE_HELP = (
    "Kyutai's checkpoint (.safetensors); a model of transformers (its directory, or its model.safetensors);"
    " a GGUF of moshi.cpp or of ours."
)
_DTYPE_HELP = "f32, or f16 (convs and RVQ projections). Without it f32, a GGUF's own types, or f16 in the raw form."

_QUANTIZE_HELP = (
    "q8_0: the projections of transformers and RVQ in a quarter of the room; --dtype f16 besides makes the smallest file."
)

_FORM_HELP = (
    "enriched; or raw: moshi.cpp's own form, without metadata. Raw takes a model of 8 heads, context 250 and period 10000 only;"
    " name and default levels are not stored."
)


def command(
    source: Annotated[Path, typer.Argument(readable=False, help=_SOURCE_HELP)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The GGUF file to write.")],
    *,
    dtype: Annotated[str | None, typer.Option(help=_DTYPE_HELP)] = None,
    quantize: Annotated[str | None, typer.Option(help=_QUANTIZE_HELP)] = None,
    levels: Annotated[int | None, typer.Option(min=1, help="RVQ levels a session uses by default; all are kept.")] = None,
    numerics: Annotated[str | None, typer.Option(help="kyutai or ggml: the arithmetic the file asks for.")] = None,
    form: Annotated[str, typer.Option(help=_FORM_HELP)] = "enriched",
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Convert a checkpoint to the GGUF file the engine reads.

    The output is checked by the engine before it appears under its name.
    """
    with progress_bar("converting") as progress:
        report = convert_model(
            source,
            output,
            dtype=dtype,
            quantize=quantize,
            levels=levels,
            numerics=numerics,
            form=form,
            force=force,
            progress=progress,
        )
    if as_json:
        print_json(dataclasses.asdict(report))
        return
    typer.echo(
        f"{report.destination}: {report.name}, {report.weight_class}, {report.numerics} numerics, {report.levels} levels"
        f" ({report.default_levels} by default), {human_bytes(output.stat().st_size)}"
    )
    typer.echo(f"from {report.source_kind} {report.source} (sha256 {report.source_sha256})")
    typer.echo(f"{report.unchanged_tensors} of {report.tensors} tensors copied byte for byte")
    if report.quantised:
        worst = max(report.quantised, key=lambda tensor: tensor.relative_rms)
        typer.echo(f"{len(report.quantised)} quantised; relative RMS error at most {worst.relative_rms:.2e}, of {worst.name}")
