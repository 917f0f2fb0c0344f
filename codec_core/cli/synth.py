"""Write a deterministic synthetic checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from codec_core.cli.options import ForceOption
from codec_core.cli.report import human_bytes, progress_bar
from codec_core.errors import SettingError
from codec_core.synth import deep_preset, write_synthetic

_PRESET_HELP = "full (Mimi v0.1's sizes), mini (the embedded default's), tiny, or deep: long transformers of any size."


def command(
    output: Annotated[Path, typer.Option("--output", "-o", help="The .safetensors file to write.")],
    *,
    preset: Annotated[str, typer.Option(help=_PRESET_HELP)] = "full",
    layers: Annotated[int | None, typer.Option(min=1, help="Layers of each transformer of deep.")] = None,
    dim: Annotated[int | None, typer.Option(min=2, help="Width of the latent of deep.")] = None,
    heads: Annotated[int | None, typer.Option(min=1, help="Heads of a layer of deep.")] = None,
    mlp_width: Annotated[int | None, typer.Option(min=1, help="Width of the MLPs of deep; without it, 4 x dim.")] = None,
    context_steps: Annotated[int | None, typer.Option(min=1, help="Reach of attention of deep, in half frames.")] = None,
    force: ForceOption = False,
) -> None:
    """Write a deterministic synthetic checkpoint.

    It has the form Kyutai publishes and the same bytes on every machine: for tests and benchmarks, not for listening.
    """
    sizes = (layers, dim, heads, mlp_width, context_steps)
    if preset != "deep" and any(size is not None for size in sizes):
        raise SettingError("preset", preset, "deep, the one whose sizes can be chosen")
    with progress_bar("writing") as progress:
        chosen = deep_preset(*sizes) if preset == "deep" else preset
        size = write_synthetic(output, chosen, force=force, progress=progress)
    typer.echo(f"{output}: {preset}, {human_bytes(size)}")
