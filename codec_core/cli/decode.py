"""Decode codes to an audio file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import numpy as np
import typer

from codec_core import CodecModel
from codec_core.atomic_file import require_other_file
from codec_core.audio_file import STANDARD_INPUT, SoundWriter, open_wav
from codec_core.cli.options import BudgetOption, JsonOption, ModelOption, NumericsOption, ThreadsOption
from codec_core.cli.report import Progress, print_json, print_warning, progress_bar
from codec_core.codes_file import CodesDocument, CodesFormat, read_codes, read_codes_from_input, require_levels
from codec_core.corpus.reader import Corpus
from codec_core.errors import AudioFileError, SettingError

FRAMES_AT_ONCE: Final = 32
_CODES_HELP: Final = "Codes: .npy, .mimi, .json or .safetensors; - for standard input, with --format; a corpus, with --row."
_OUTPUT_HELP: Final = "A .wav file: mono, 24 kHz, 16 bits. Appears whole or not at all; an existing file is replaced."


def command(
    codes: Annotated[str, typer.Argument(help=_CODES_HELP)],
    output: Annotated[Path, typer.Option("--output", "-o", help=_OUTPUT_HELP)],
    *,
    form: Annotated[CodesFormat | None, typer.Option("--format", help="Format of codes on standard input.")] = None,
    row: Annotated[int | None, typer.Option("--row", min=0, help="Index of an input, of a corpus of mimi tokenize.")] = None,
    model: ModelOption = "default",
    numerics: NumericsOption = None,
    threads: ThreadsOption = None,
    ram_budget: BudgetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Decode codes to an audio file.

    The file has 1920 samples per frame, or the true length where the codes' format keeps it.
    """
    document = _read(codes, form) if row is None else _read_row(codes, row)
    if codes != STANDARD_INPUT:
        require_other_file(codes, output, error=AudioFileError)
    with open_wav(output) as writer, progress_bar("decoding") as progress:
        opened = CodecModel.open(model, numerics=numerics, threads=threads, ram_budget_bytes=ram_budget)
        require_levels(document, opened.info.levels, "standard input" if codes == STANDARD_INPUT else codes)
        _warn_if_foreign(document, opened)
        decode_document(opened, document, writer, progress)
    if as_json:
        shape = {"levels": document.levels, "frames": document.frames, "samples": writer.samples}
        print_json({"output": str(output), **shape, "model": opened.info.name, "numerics": opened.info.numerics})
    else:
        typer.echo(f"{output}: {writer.samples} samples, {writer.samples / 24000:.2f} s")


def _read(codes: str, form: CodesFormat | None) -> CodesDocument:
    """Read codes of a file, whose suffix tells the format, or of standard input, of which ``form`` must."""
    if (codes == STANDARD_INPUT) != (form is not None):
        expected = "one where the codes come from standard input, and only there: a file's suffix tells it"
        raise SettingError("--format", f"{form}", expected)
    return read_codes(codes) if form is None else read_codes_from_input(form)


def _read_row(folder: str, index: int) -> CodesDocument:
    """Read the codes of one input of a corpus."""
    corpus = Corpus(folder)
    row = corpus.row(index)
    return CodesDocument(row.codes.astype(np.int32), row.facts.samples, corpus.provenance)


def decode_document(model: CodecModel, document: CodesDocument, writer: SoundWriter, progress: Progress) -> None:
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
