"""Encode an audio file to codes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import typer

from codec_core import CodecModel
from codec_core.atomic_file import require_other_file
from codec_core.audio_file import STANDARD_INPUT, AudioReader
from codec_core.cli.options import BudgetOption, JsonOption, LevelsOption, ModelOption, NumericsOption, ThreadsOption
from codec_core.cli.report import Progress, print_json, print_warning, progress_bar
from codec_core.codes_file import CodesDocument, format_of, write_codes
from codec_core.errors import CodesFileError
from codec_core.provenance import provenance

OUTPUT_HELP = "Codes: .npy, .mimi, .json or .safetensors. Appears whole or not at all; an existing file is replaced."


def command(
    audio: Annotated[str, typer.Argument(help="Any format libsndfile reads, any rate and channels; - for standard input.")],
    output: Annotated[Path, typer.Option("--output", "-o", help=OUTPUT_HELP)],
    *,
    levels: LevelsOption = None,
    model: ModelOption = "default",
    numerics: NumericsOption = None,
    threads: ThreadsOption = None,
    ram_budget: BudgetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Encode an audio file to codes.

    The last frame is padded with zeros; .json and .safetensors keep the true length and what made the codes.
    """
    format_of(output)
    if audio != STANDARD_INPUT:
        require_other_file(audio, output, error=CodesFileError)
    with AudioReader(audio) as reader, progress_bar("encoding") as progress:
        opened = CodecModel.open(model, numerics=numerics, threads=threads, ram_budget_bytes=ram_budget)
        codes, samples = encode_file(opened, reader, levels, progress)
    warnings = _warnings(reader, samples)
    for warning in warnings:
        print_warning(warning)
    write_codes(output, CodesDocument(codes, samples, provenance(opened)))
    if as_json:
        shape = {"levels": codes.shape[0], "frames": codes.shape[1], "samples": samples}
        print_json({"output": str(output), **shape, "provenance": provenance(opened), "warnings": warnings})
    else:
        typer.echo(f"{output}: {codes.shape[0]} levels x {codes.shape[1]} frames, {samples / 24000:.2f} s")


def encode_file(
    model: CodecModel, reader: AudioReader, levels: int | None, progress: Progress
) -> tuple[npt.NDArray[np.int32], int]:
    """Encode a whole file in one pass; return the codes [levels, frames] and the number of samples at 24 kHz."""
    session = model.encoder(levels)
    pieces = []
    samples = 0
    for pcm in reader.pcm():
        pieces.append(session.push(pcm))
        samples += len(pcm)
        progress(samples, reader.expected_samples)
    pieces.append(session.flush())
    return np.concatenate(pieces, axis=1), samples


def _warnings(reader: AudioReader, samples: int) -> list[str]:
    """Return what is odd about the audio that was read."""
    nothing = "the audio has no samples: there is nothing to encode" if samples == 0 else None
    return [f"{reader.subject}: {warning}" for warning in (reader.missing, nothing) if warning is not None]
