"""Stream a file or a microphone to a service, and keep what comes back."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, cast

import numpy.typing as npt
import typer

from codec_core.atomic_file import require_other_file
from codec_core.audio_file import STANDARD_INPUT
from codec_core.cli.options import JsonOption, LevelsOption
from codec_core.cli.report import print_json
from codec_core.cli.stream_sink import WAV_SUFFIX, Played, Sink, Told, open_sink
from codec_core.cli.stream_source import MICROPHONE, Source, open_source, stoppable
from codec_core.cli.stream_view import StreamView
from codec_core.client import LineOptions, Stream
from codec_core.client.jitter_buffer import JitterBuffer
from codec_core.client.line import stream_url
from codec_core.client.settings import SampleFormat, StreamSettings
from codec_core.errors import AudioFileError, CodesFileError, SettingError
from codec_core.pcm import CODEC_RATE_HZ
from codec_core.speaker import Speaker

_SOURCE_HELP = "A sound file; a file of codes (.npy, .mimi, .json, .safetensors); mic; or - for raw 16-bit mono samples."
_OUTPUT_HELP = "Codes (.npy, .mimi, .json, .safetensors), or .wav: the sound of the codes. Without it, codes are printed."


_TALK_HELP = "Have the service's language model hear it, and keep what it answers."
_FORMAT_HELP = "How sound travels: f32le, s16le, opus, or opus-packets (extra opus)."

_PACED_BYTES: Final = 4 * 1920 * 4
"""Four frames of sound."""
_PROVENANCE: Final = {"name": "model", "sha256": "model_sha256", "weight_class": "weight_class", "numerics": "numerics"}
"""What the service says of its model, under the names that ``mimi encode`` gives it."""


@dataclass(frozen=True)
class _Request:
    """What the command line asks for."""

    url: str
    options: LineOptions
    paced: bool
    seconds: float | None


def command(
    source: Annotated[str, typer.Argument(help=_SOURCE_HELP)],
    *,
    url: Annotated[str, typer.Option("--url", "-u", envvar="MIMI_URL", help="The service.")] = "ws://127.0.0.1:8000",
    output: Annotated[Path | None, typer.Option("--output", "-o", help=_OUTPUT_HELP)] = None,
    levels: LevelsOption = None,
    key: Annotated[str | None, typer.Option("--key", envvar="MIMI_API_KEY", help="A key of the service.")] = None,
    paced: Annotated[bool, typer.Option("--paced", help="Send a file in real time, as a microphone would.")] = False,
    seconds: Annotated[float | None, typer.Option("--seconds", min=0, help="End after so long; else with the input.")] = None,
    form: Annotated[str, typer.Option("--format", help=_FORMAT_HELP)] = "f32le",
    talk: Annotated[bool, typer.Option("--talk", help=_TALK_HELP)] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="With --talk, of the model's choices.")] = 0,
    play: Annotated[bool, typer.Option("--play", help="Play what comes back, in real time (extra sounddevice).")] = False,
    sample_rate: Annotated[int, typer.Option("--sample-rate", help="Of raw samples on standard input.")] = 24_000,
    as_json: JsonOption = False,
) -> None:
    """Stream a file or a microphone to a service, and keep what comes back.

    Sound becomes codes, or with a .wav output the sound that its codes stand for; codes become sound. With --talk a language
    model answers, in text on standard output and sound in the .wav. A lost connection is made again, and the stream goes on
    where it was. Ctrl-C ends the input; what was sent is still answered and written.
    """
    is_sound = output is not None and output.suffix.lower() == WAV_SUFFIX
    if output is not None and source not in (STANDARD_INPUT, MICROPHONE):
        require_other_file(source, output, error=AudioFileError if is_sound else CodesFileError)
    if talk and output is not None and not is_sound:
        raise SettingError("output", str(output), "a .wav file: a language model answers in sound")
    wanted = StreamSettings("talk", seed=seed) if talk else None
    how: dict[str, Any] = {"echo": is_sound or play, "sample_format": cast(SampleFormat, form), "talk": wanted}
    opened = open_source(source, sample_rate, levels, **how)
    paced = paced or play
    if opened.settings.mode == "decode" and output is not None and not is_sound:
        raise SettingError("output", str(output), "a .wav file: codes become sound")
    # What waits here would still be sent after Ctrl-C.
    options = LineOptions(key=key, max_unsent_bytes=_PACED_BYTES) if paced else LineOptions(key=key)
    request = _Request(stream_url(url), options, paced, seconds)
    # The name alone: a whole path would push the server's address out of the title.
    title = f"{Path(source).name} -> {request.url.partition('?')[0]}"
    view = StreamView(title, quiet=as_json, total_frames=opened.expected_frames)
    with _sink(output, lines=not as_json, play=play) as inner:
        sink = Told(inner, told=talk and not as_json)
        result = asyncio.run(_stream(request, opened, sink, view)) | ({"text": sink.text} if talk else {})
    _report(result | {"output": None if output is None else str(output), "warnings": view.warnings}, as_json=as_json)


@contextlib.contextmanager
def _sink(output: Path | None, *, lines: bool, play: bool) -> Iterator[Sink]:
    with open_sink(output, lines=lines) as sink, contextlib.ExitStack() as stack:
        yield Played(sink, stack.enter_context(Speaker(JitterBuffer(CODEC_RATE_HZ)))) if play else sink


async def _stream(request: _Request, source: Source, sink: Sink, view: StreamView) -> dict[str, Any]:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, _interrupt, stop, asyncio.current_task())
    if request.seconds is not None:
        loop.call_later(request.seconds, stop.set)
    stream = Stream(request.url, source.settings, request.options, paced=request.paced, notify=view.notice)
    try:
        async with stream:
            with view.shown(stream) as interval_s:
                ticking = asyncio.create_task(_tick(stream, view, interval_s))
                try:
                    async for frame in stream.run(_watched(stoppable(source.chunks, stop), view)):
                        view.received(frame)
                        sink.take(frame)
                finally:
                    ticking.cancel()
            return _finish(stream, source, sink)
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def _finish(stream: Stream, source: Source, sink: Sink) -> dict[str, Any]:
    flushed, stats, model = stream.flushed, stream.stats, stream.ready.model
    samples = flushed.samples if source.samples is None else min(flushed.samples, source.samples)
    sink.finish(samples, {ours: str(model[theirs]) for theirs, ours in _PROVENANCE.items() if theirs in model})
    return {
        "mode": source.settings.mode,
        "levels": stream.ready.levels,
        "frames": flushed.frames,
        "samples": samples,
        "model": model.get("name"),
        "numerics": model.get("numerics"),
        "latency_ms": stats.latency_ms,
        "resumes": stats.resumes,
    }


async def _watched(chunks: AsyncIterator[npt.NDArray[Any]], view: StreamView) -> AsyncIterator[npt.NDArray[Any]]:
    async for chunk in chunks:
        view.sent(chunk)
        yield chunk


async def _tick(stream: Stream, view: StreamView, interval_s: float) -> None:
    while True:
        await asyncio.sleep(interval_s)
        view.tick(stream)


def _interrupt(stop: asyncio.Event, task: asyncio.Task[Any] | None) -> None:
    """End the input at the first Ctrl-C, everything at the second."""
    if stop.is_set() and task is not None:
        task.cancel()
    stop.set()


def _report(result: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(result)
        return
    shape = f"{result['levels']} levels x {result['frames']} frames, {result['samples'] / 24000:.2f} s"
    latency = result["latency_ms"]["p50"]
    told = "" if latency is None else f"; latency {latency:.0f} ms"
    resumed = f"; resumed {result['resumes']} times" if result["resumes"] else ""
    typer.echo(f"{result['output'] or result['mode']}: {shape}{told}{resumed}", err=result["output"] is None)
