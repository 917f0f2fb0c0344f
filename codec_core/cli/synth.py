"""Write a deterministic synthetic checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from codec_core.cli.options import ForceOption
from codec_core.cli.report import human_bytes, progress_bar
from codec_core.synth import write_synthetic


def command(
    output: Annotated[Path, typer.Option("--output", "-o", help="The .safetensors file to write.")],
    preset: Annotated[str, typer.Option(help="full (Mimi v0.1's sizes), mini (the embedded default's) or tiny.")] = "full",
    force: ForceOption = False,
) -> None:
    """Write a deterministic synthetic checkpoint.

    It has the form Kyutai publishes and the same bytes on every machine: for tests and benchmarks, not for listening.
    """
    with progress_bar("writing") as progress:
        size = write_synthetic(output, preset, force=force, progress=progress)
    typer.echo(f"{output}: {preset}, {human_bytes(size)}")
