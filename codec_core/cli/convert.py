"""Convert a checkpoint to the GGUF file the engine reads."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from codec_core.cli.options import ForceOption, JsonOption
from codec_core.cli.report import human_bytes, print_json, progress_bar
from codec_core.convert import convert_model


def command(
    source: Annotated[Path, typer.Argument(help="Kyutai's checkpoint (.safetensors), or a GGUF of moshi.cpp or of ours.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The GGUF file to write.")],
    *,
    dtype: Annotated[
        str | None, typer.Option(help="f32, or f16 (convs and RVQ projections). Without it f32, or a GGUF's own types.")
    ] = None,
    levels: Annotated[int | None, typer.Option(min=1, help="RVQ levels a session uses by default; all are kept.")] = None,
    numerics: Annotated[str | None, typer.Option(help="kyutai or ggml: the arithmetic the file asks for.")] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Convert a checkpoint to the GGUF file the engine reads.

    The output is checked by the engine before it appears under its name.
    """
    with progress_bar("converting") as progress:
        report = convert_model(source, output, dtype=dtype, levels=levels, numerics=numerics, force=force, progress=progress)
    if as_json:
        print_json(dataclasses.asdict(report))
        return
    typer.echo(
        f"{report.destination}: {report.name}, {report.weight_class}, {report.numerics} numerics, {report.levels} levels"
        f" ({report.default_levels} by default), {human_bytes(output.stat().st_size)}"
    )
    typer.echo(f"from {report.source_kind} {report.source} (sha256 {report.source_sha256})")
    typer.echo(f"{report.unchanged_tensors} of {report.tensors} tensors copied byte for byte")
