"""Talk to a language model: a recording in, what the model says to it out."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from codec_core.atomic_file import require_other_file
from codec_core.audio_file import STANDARD_INPUT, AudioReader, open_wav
from codec_core.cli.options import BudgetOption, JsonOption, ModelOption, NumericsOption, ThreadsOption
from codec_core.cli.report import print_json, print_warning
from codec_core.cli.talk_models import Choices, TalkModels, new_session, open_models
from codec_core.cli.talk_progress import TalkProgress, duration, measured_frame_s
from codec_core.cli.talk_run import Heard, Recording, talk_through
from codec_core.cli.talk_text import open_text
from codec_core.errors import AudioFileError, SettingError

_AUDIO_HELP: Final = "What is said to the model: any format libsndfile reads; - for standard input."
_OUTPUT_HELP: Final = "What it answers: a .wav file as long as the input and --tail; mono, 24 kHz, 16 bits."
_TEXT_HELP: Final = "What it writes: a text file, or - for standard output, where text goes if there is no sound."
_TIMES_HELP: Final = "A word a line, with its time in seconds; so by default where there is no sound."
_TAIL_HELP: Final = "Seconds of silence behind the input, for the model to finish in."
_SEED_HELP: Final = "Of the model's choices; the same seed makes the same answer on every machine."
_CONDITION_HELP: Final = "NAME=LABEL, of models that take conditions; may be given several times."
_VOICE_HELP: Final = "Of PersonaPlex: the voice that it is to have, a recording or a stored one (.gguf)."
_PROMPT_HELP: Final = "Of PersonaPlex: who it is to be, in words (extra lm)."
_LANGUAGE_HELP: Final = "The language model: a GGUF file that mimi convert made."


@dataclass(frozen=True)
class _Request:
    """What the command line asks for."""

    audio: str
    output: Path | None
    text: str | None
    times: bool | None
    tail_s: float
    as_json: bool


def command(
    audio: Annotated[str, typer.Argument(help=_AUDIO_HELP)],
    *,
    language_model: Annotated[Path, typer.Option("--language-model", "-l", envvar="MIMI_LANGUAGE_MODEL", help=_LANGUAGE_HELP)],
    output: Annotated[Path | None, typer.Option("--output", "-o", help=_OUTPUT_HELP)] = None,
    text: Annotated[str | None, typer.Option("--text", "-t", help=_TEXT_HELP)] = None,
    times: Annotated[bool | None, typer.Option("--times/--no-times", help=_TIMES_HELP, show_default=False)] = None,
    tail: Annotated[float, typer.Option("--tail", min=0, max=3600, help=_TAIL_HELP)] = 0.0,
    seed: Annotated[int, typer.Option("--seed", min=0, help=_SEED_HELP)] = 0,
    temperature: Annotated[float | None, typer.Option(help="Of its sound; 0 is greedy. Without it, as published.")] = None,
    top_k: Annotated[int | None, typer.Option(min=0, help="Codes that take part in a choice; 0 for all.")] = None,
    text_temperature: Annotated[float | None, typer.Option(help="Of its text.")] = None,
    text_top_k: Annotated[int | None, typer.Option(min=0, help="Text tokens that take part in a choice.")] = None,
    condition: Annotated[list[str] | None, typer.Option("--condition", help=_CONDITION_HELP)] = None,
    voice: Annotated[Path | None, typer.Option("--voice", help=_VOICE_HELP)] = None,
    prompt: Annotated[str | None, typer.Option("--prompt", help=_PROMPT_HELP)] = None,
    model: ModelOption = "default",
    numerics: NumericsOption = None,
    threads: ThreadsOption = None,
    ram_budget: BudgetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Talk to a language model: a recording in, what the model says to it out.

    It need not keep up with real time: how long it will take is measured and said first. A model that recognises speech only
    writes.
    """
    request = _Request(audio, output, text, times, tail, as_json)
    if output is not None and audio != STANDARD_INPUT:
        require_other_file(audio, output, error=AudioFileError)
    given = {"temperature": temperature, "top_k": top_k, "text_temperature": text_temperature, "text_top_k": text_top_k}
    choices = Choices(seed, given, tuple(condition or ()), voice, prompt)
    models = open_models(language_model, model, numerics, threads, ram_budget)
    _require_legal(request, models)
    result = _talk(request, models, choices)
    if as_json:
        print_json(result)
        return
    sound = f"{output}: {result['samples'] / 24000:.2f} s; " if output is not None else ""
    took = f"{result['frames']} frames in {duration(result['seconds'])}, real time factor {result['real_time_factor']:.2f}"
    typer.echo(sound + took, err=True)


def _require_legal(request: _Request, models: TalkModels) -> None:
    if request.output is not None and not models.language.info.own_levels:
        raise SettingError("--output", str(request.output), f"--text: {models.language.info.name!r} only writes")


def _talk(request: _Request, models: TalkModels, choices: Choices) -> dict[str, Any]:
    info = models.language.info
    only_writes = not info.own_levels
    target = request.text or ("-" if only_writes and not request.as_json else None)
    with_times = only_writes if request.times is None else request.times
    with AudioReader(request.audio) as reader, contextlib.ExitStack() as stack:
        writer = None if request.output is None else stack.enter_context(open_wav(request.output))
        sink = stack.enter_context(open_text(target, with_times=with_times, has_pieces=models.tokenizer is not None))
        recording = Recording(reader, models, request.tail_s)
        frame_s = measured_frame_s(models, choices)
        progress = TalkProgress(recording.expected_frames, frame_s, quiet=request.as_json)
        started_s = time.monotonic()
        session = new_session(models, choices)
        with progress.shown():
            heard = talk_through(models, session, recording, progress=progress, writer=writer, sink=sink)
        taken_s = time.monotonic() - started_s
    for warning in heard.warnings:
        print_warning(warning)
    return _result(request, models, heard, taken_s) | {"text": sink.text, "words": sink.timed_words, "text_tokens": sink.tokens}


def _result(request: _Request, models: TalkModels, heard: Heard, taken_s: float) -> dict[str, Any]:
    audio_s = heard.frames * models.codec.info.frame_samples / models.codec.info.sample_rate_hz
    info = models.language.info
    return {
        "output": None if request.output is None else str(request.output),
        "frames": heard.frames,
        "samples": heard.samples,
        "seconds": round(taken_s, 3),
        "real_time_factor": round(taken_s / audio_s, 4) if audio_s else 0.0,
        "language_model": {"name": info.name, "sha256": info.sha256, "weight_class": info.weight_class},
        "model": {"name": models.codec.info.name, "sha256": models.codec.info.sha256},
        "warnings": heard.warnings,
    }
