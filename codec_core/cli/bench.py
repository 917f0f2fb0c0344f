"""Measure encoding and decoding on this machine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import numpy.typing as npt
import typer
from rich.table import Table

from codec_core import CodecModel
from codec_core.cli.options import JsonOption, LevelsOption, ModelOption, NumericsOption, ThreadsOption
from codec_core.cli.report import Progress, human_bytes, print_json, progress_bar, result_console
from codec_core.errors import SettingError

WARM_UP_FRAMES: Final = 130
"""Enough to fill the attention context of Mimi (250 steps, two a frame), so that every timed frame does all the work."""
FEWEST_CALLS: Final = 5
FRAME_MS: Final = 80.0
_MOST_SESSIONS: Final = 4096

Float32Array = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Measurement:
    """Times of one direction at one batch size."""

    direction: str
    batch: int
    levels: int
    calls: int
    ms_per_frame_median: float
    """Of one session's frame: the call's time divided by the batch."""
    ms_per_call_median: float
    ms_per_call_p95: float
    real_time_factor: float
    """Compute time per audio time of one session."""
    sessions_in_real_time: float
    """Sessions this many threads could keep up with, in this direction alone."""


def command(
    *,
    model: ModelOption = "default",
    batch: Annotated[str, typer.Option(help="Batch sizes to measure, comma-separated.")] = "1,4,16",
    levels: LevelsOption = None,
    seconds: Annotated[float, typer.Option(min=0.0, max=600.0, help="Time to spend on each figure.")] = 2.0,
    numerics: NumericsOption = None,
    threads: ThreadsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure encoding and decoding on this machine.

    Sessions are first brought to the state of a long-running stream (attention context full), then every call is timed.
    Figures are medians; other load on the machine shows in them.
    """
    sizes = _batch_sizes(batch)
    before = resident_bytes()
    opened = CodecModel.open(model, numerics=numerics, threads=threads)
    with progress_bar("measuring") as progress:
        results = list(measure(opened, sizes, levels or opened.info.default_levels, seconds, progress))
    memory = {"before_model": before, "at_end": resident_bytes(), "weights": opened.info.weights_bytes}
    if as_json:
        rows = [asdict(result) for result in results]
        print_json({"machine": machine(), "model": asdict(opened.info), "results": rows, "memory_bytes": memory})
    else:
        _print(opened, results, memory)


def measure(model: CodecModel, sizes: list[int], levels: int, seconds: float, progress: Progress) -> Iterator[Measurement]:
    """Measure both directions at every batch size."""
    pcm = _test_signal(WARM_UP_FRAMES, model.info.frame_samples)
    encoder, decoder = model.encoder(levels), model.decoder(levels)
    codes = []
    for done, frame in enumerate(pcm):
        codes.append(encoder.encode(frame))
        decoder.decode(codes[-1])
        progress(done, WARM_UP_FRAMES + len(sizes) * WARM_UP_FRAMES)
    encoder_state, decoder_state = encoder.snapshot(), decoder.snapshot()
    all_codes = np.stack(codes)
    for done, size in enumerate(sizes, start=1):
        lanes = np.arange(size)
        encoders = [model.restore_encoder(encoder_state) for _ in lanes]
        yield _timed("encode", levels, size, seconds, lambda i: model.encode_batch(encoders, pcm[(lanes + i) % len(pcm)]))  # noqa: B023
        decoders = [model.restore_decoder(decoder_state) for _ in lanes]
        yield _timed(
            "decode",
            levels,
            size,
            seconds,
            lambda i: model.decode_batch(decoders, all_codes[(lanes + i) % len(pcm)]),  # noqa: B023
        )
        progress(WARM_UP_FRAMES + done * WARM_UP_FRAMES, WARM_UP_FRAMES + len(sizes) * WARM_UP_FRAMES)


def _timed(direction: str, levels: int, batch: int, seconds: float, step: Callable[[int], Any]) -> Measurement:
    step(0)
    times_ms: list[float] = []
    stop = time.perf_counter() + seconds
    while len(times_ms) < FEWEST_CALLS or time.perf_counter() < stop:
        start = time.perf_counter()
        step(len(times_ms))
        times_ms.append((time.perf_counter() - start) * 1000)
    median = float(np.median(times_ms))
    return Measurement(
        direction=direction,
        batch=batch,
        levels=levels,
        calls=len(times_ms),
        ms_per_frame_median=median / batch,
        ms_per_call_median=median,
        ms_per_call_p95=float(np.percentile(times_ms, 95)),
        real_time_factor=median / batch / FRAME_MS,
        sessions_in_real_time=FRAME_MS * batch / median,
    )


def machine() -> dict[str, Any]:
    """Return what a figure is worth nothing without: the processor and how many of its cores we may use."""
    name = "unknown"
    cpu_file = Path("/proc/cpuinfo")
    if cpu_file.exists():
        lines = cpu_file.read_text(encoding="utf-8").splitlines()
        name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), name)
    return {"processor": name, "cores": len(os.sched_getaffinity(0))}


def resident_bytes() -> int:
    """Return the memory of this process that is in RAM."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _batch_sizes(text: str) -> list[int]:
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() and 1 <= int(part) <= _MOST_SESSIONS for part in parts):
        raise SettingError("batch", text, f"numbers of 1 .. {_MOST_SESSIONS} with commas between them")
    return [int(part) for part in parts]


def _test_signal(frames: int, frame_samples: int) -> Float32Array:
    """Return a gliding tone in noise, [frames, frame_samples]: no frame is like another, none is silent."""
    at_s = np.arange(frames * frame_samples) / 24000
    tone = 0.2 * np.sin(2 * np.pi * (120 + 20 * at_s) * at_s)
    noise = np.random.default_rng(1).standard_normal(len(at_s)) * 0.02
    return (tone + noise).astype(np.float32).reshape(frames, frame_samples)


def _print(model: CodecModel, results: list[Measurement], memory: dict[str, int]) -> None:
    info, host = model.info, machine()
    console = result_console()
    console.print(f"{info.name}, {info.weight_class}, {info.numerics} numerics, {info.isa}, threads: {info.threads}")
    console.print(f"{host['processor']}, {host['cores']} cores")
    table = Table("direction", "batch", "levels", "ms/frame", "ms/call", "p95", "sessions", box=None, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    for row in results:
        times = (f"{value:.3f}" for value in (row.ms_per_frame_median, row.ms_per_call_median, row.ms_per_call_p95))
        table.add_row(row.direction, str(row.batch), str(row.levels), *times, f"{row.sessions_in_real_time:.0f}")
    console.print(table)
    console.print(
        f"memory {human_bytes(memory['at_end'])}, of which {human_bytes(memory['before_model'])} before the model"
        f" and {human_bytes(memory['weights'])} weights; a session {human_bytes(info.encoder_state_bytes)} to encode,"
        f" {human_bytes(info.decoder_state_bytes)} to decode"
    )
