"""Encode an audio file to codes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import typer

from codec_core import CodecModel, __version__
from codec_core.audio_file import AudioReader
from codec_core.cli.options import JsonOption, LevelsOption, ModelOption, NumericsOption, ThreadsOption
from codec_core.cli.report import Progress, print_json, progress_bar
from codec_core.codes_file import CodesDocument, format_of, write_codes


def command(
    audio: Annotated[str, typer.Argument(help="Any format libsndfile reads, any rate and channels; - for standard input.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Codes: .npy, .mimi, .json or .safetensors.")],
    *,
    levels: LevelsOption = None,
    model: ModelOption = "default",
    numerics: NumericsOption = None,
    threads: ThreadsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Encode an audio file to codes.

    The last frame is padded with zeros; .json and .safetensors keep the true length and what made the codes.
    """
    format_of(output)
    with AudioReader(audio) as reader, progress_bar("encoding") as progress:
        opened = CodecModel.open(model, numerics=numerics, threads=threads)
        codes, samples = encode_file(opened, reader, levels, progress)
    write_codes(output, CodesDocument(codes, samples, provenance(opened)))
    if as_json:
        shape = {"levels": codes.shape[0], "frames": codes.shape[1], "samples": samples}
        print_json({"output": str(output), **shape, "provenance": provenance(opened)})
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


def provenance(model: CodecModel) -> dict[str, str]:
    """Return what made the codes, for the formats that keep it."""
    info = model.info
    return {
        "model": info.name,
        "model_sha256": info.sha256,
        "weight_class": info.weight_class,
        "numerics": info.numerics,
        "encoder": f"mimi-server {__version__}",
    }
