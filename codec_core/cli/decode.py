"""Decode codes to an audio file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from codec_core import CodecModel
from codec_core.audio_file import WavWriter, open_wav
from codec_core.cli.options import JsonOption, ModelOption, NumericsOption, ThreadsOption
from codec_core.cli.report import Progress, print_json, print_warning, progress_bar
from codec_core.codes_file import CodesDocument, read_codes

FRAMES_AT_ONCE = 32


def command(
    codes: Annotated[Path, typer.Argument(help="Codes: .npy, .mimi, .json or .safetensors.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="A .wav file: mono, 24 kHz, 16 bits.")],
    *,
    model: ModelOption = "default",
    numerics: NumericsOption = None,
    threads: ThreadsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Decode codes to an audio file.

    The file has 1920 samples per frame, or the true length where the codes' format keeps it.
    """
    document = read_codes(codes)
    with open_wav(output) as writer, progress_bar("decoding") as progress:
        opened = CodecModel.open(model, numerics=numerics, threads=threads)
        _warn_if_foreign(document, opened)
        decode_document(opened, document, writer, progress)
    if as_json:
        shape = {"levels": document.levels, "frames": document.frames, "samples": writer.samples}
        print_json({"output": str(output), **shape, "model": opened.info.name, "numerics": opened.info.numerics})
    else:
        typer.echo(f"{output}: {writer.samples} samples, {writer.samples / 24000:.2f} s")


def decode_document(model: CodecModel, document: CodesDocument, writer: WavWriter, progress: Progress) -> None:
    """Decode a whole document in one pass and write it, without the padding of the last frame where that is known."""
    session = model.decoder(document.levels)
    left = document.frames * model.info.frame_samples if document.samples is None else document.samples
    for start in range(0, document.frames, FRAMES_AT_ONCE):
        pcm = session.push(document.codes[:, start : start + FRAMES_AT_ONCE])
        writer.write(pcm[:left])
        left -= min(left, len(pcm))
        progress(start, document.frames)


def _warn_if_foreign(document: CodesDocument, model: CodecModel) -> None:
    made_by = document.provenance.get("model_sha256")
    if made_by is not None and made_by != model.info.sha256:
        name = document.provenance.get("model", "another model")
        print_warning(f"these codes were made by {name} ({made_by[:12]}), not by {model.info.name} ({model.info.sha256[:12]})")
