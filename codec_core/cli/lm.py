"""Measure language models: speed, what a weight class costs, synthetic ones to measure on."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from codec_core import __version__
from codec_core.bench.language import LanguageRun, measure_steps
from codec_core.bench.machine import describe_machine
from codec_core.cli.bench import numbers
from codec_core.cli.options import BudgetOption, ForceOption, JsonOption, ThreadsOption
from codec_core.cli.report import human_bytes, print_json, printable, progress_bar, result_console
from codec_core.codes_file import read_codes
from codec_core.language_model import LanguageModel
from codec_core.synth_lm_file import SYNTH_TYPES, moshi_config, write_synthetic_lm
from codec_core.verify.language_drift import LanguageDrift, LogitDrift, measure_language_drift

command = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__)
_MODEL_HELP = "A language model's GGUF file."
ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help=_MODEL_HELP)]


@command.command()
def bench(
    model: ModelArgument,
    *,
    batch: Annotated[str, typer.Option(help="Streams stepped together, comma-separated.")] = "1",
    threads: Annotated[str, typer.Option(envvar="MIMI_THREADS", help="Threads of one step, comma-separated.")] = "1,2",
    isa: Annotated[str, typer.Option(envvar="MIMI_ISA", help="Instruction set; without it, the best here.")] = "",
    seconds: Annotated[float, typer.Option(min=0.0, max=600.0, help="Time to spend on each figure.")] = 3.0,
    ram_budget: BudgetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how fast a language model steps here.

    A step by itself is bound by reading its matrices: beside its time stand the rate at which it reads them, that at which as
    many threads of this machine read memory and do nothing else, and the one by the other. Streams are at their start, where
    keys and values are few. Each number of threads has a process of its own, which also tells time of loading and memory.
    """
    batches, counts = numbers("batch", batch), numbers("threads", threads)
    host = describe_machine()
    runs: list[LanguageRun] = []
    with progress_bar("measuring") as progress:
        for run in measure_steps(
            str(model), batches=batches, threads=counts, isa=isa, seconds=seconds, budget_bytes=ram_budget
        ):
            runs.append(run)
            progress(len(runs), len(counts))
    if as_json:
        print_json({"version": __version__, "machine": host, "model": str(model), "runs": [asdict(run) for run in runs]})
        return
    console = result_console()
    console.print(f"{host['processor']}, {host['cores']} cores; load {host['load_before']}")
    console.print(_bench_table(runs))
    for run in runs:
        console.print(_memory_line(run))


@command.command()
def drift(
    model: ModelArgument,
    reference: Annotated[Path, typer.Argument(metavar="REFERENCE", help="The model it is measured against.")],
    codes: Annotated[
        Path | None, typer.Argument(metavar="[CODES]", help="The user's codes, a file of mimi encode; without it, random ones.")
    ] = None,
    *,
    steps: Annotated[int, typer.Option(min=1, help="Steps, at most as many as CODES has.")] = 125,
    threads: ThreadsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how far MODEL's logits are from REFERENCE's, with the same tokens going in.

    REFERENCE runs greedily, MODEL is forced to say what it has said. Relative RMS is that of the difference of logits; equal is
    the share of steps in which both have the same largest one.
    """
    right, measured = (LanguageModel.open(path, threads=threads) for path in (reference, model))
    if codes is None:
        user = np.random.default_rng(1).integers(0, right.info.codebook_entries, (steps, right.info.user_levels), np.int32)
    else:
        user = np.ascontiguousarray(read_codes(codes).codes.T[:steps])
    with progress_bar("stepping") as progress:
        found = measure_language_drift(right, measured, user, progress)
    if as_json:
        print_json(found.fields())
        return
    console = result_console()
    for label, info in (("model", measured.info), ("against", right.info)):
        console.print(printable(f"{label:8} {info.name}, {info.weight_class}: {info.path}"))
    console.print(_drift_table(found))


@command.command()
def synth(
    output: Annotated[Path, typer.Option("--output", "-o", help="The GGUF file to write.")],
    *,
    weights: Annotated[str, typer.Option(help=" or ".join(SYNTH_TYPES) + ".")] = "q8_0",
    layers: Annotated[int | None, typer.Option(min=1, help="Layers of the temporal transformer.")] = None,
    dim: Annotated[int | None, typer.Option(min=1, help="Its width, a multiple of 256; heads are of 128.")] = None,
    depformer_layers: Annotated[int | None, typer.Option(min=1, help="Layers of the depformer.")] = None,
    depformer_dim: Annotated[int | None, typer.Option(min=1, help="Its width, a multiple of 128; heads are of 64.")] = None,
    card: Annotated[int | None, typer.Option(min=1, help="Codes of a codebook.")] = None,
    text_card: Annotated[int | None, typer.Option(min=1, help="Text tokens, a multiple of 4.")] = None,
    force: ForceOption = False,
) -> None:
    """Write a synthetic language model of moshiko's shape, to measure on: as large as a real one, and never trained.

    Sizes that are not given are moshiko's. Tensors have the types that mimi convert --quantize gives them.
    """
    config = moshi_config(
        layers=layers,
        dim=dim,
        depformer_layers=depformer_layers,
        depformer_dim=depformer_dim,
        card=card,
        text_card=text_card,
    )
    with progress_bar("writing") as progress:
        size = write_synthetic_lm(output, config, weights, force=force, progress=progress)
    typer.echo(f"{output}: {config['num_layers']} layers of {config['dim']}, {weights}, {human_bytes(size)}")


def _bench_table(runs: list[LanguageRun]) -> Table:
    columns = ("threads", "batch", "step ms", "p95", "temporal", "depformer", "read", "GB/s", "of", "reached", "real time")
    table = _table(columns)
    for run in runs:
        for times in run.steps:
            table.add_row(
                str(run.threads),
                str(times.batch),
                *(
                    f"{ms:.2f}"
                    for ms in (times.step_ms_median, times.step_ms_p95, times.temporal_ms_median, times.depformer_ms_median)
                ),
                human_bytes(run.temporal_bytes + run.depformer_bytes),
                f"{times.read_bytes_per_s / 1e9:.2f}",
                f"{run.bandwidth_bytes_per_s / 1e9:.2f}",
                f"{times.percent_of_bandwidth:.0f} %",
                f"x {times.real_time_factor:.2f}",
            )
    return table


def _memory_line(run: LanguageRun) -> str:
    plural = "s" if run.threads > 1 else ""
    return (
        f"{run.threads} thread{plural}, {run.isa}: loaded in {run.load_seconds:.2f} s, {human_bytes(run.loaded_bytes)} in RAM"
        f" ({human_bytes(run.weights_bytes)} weights), {human_bytes(run.in_use_bytes)} with streams of"
        f" {human_bytes(run.state_bytes)} each, at most {human_bytes(run.peak_bytes)}"
    )


def _drift_table(found: LanguageDrift) -> Table:
    table = _table((f"{found.steps} steps", "relative RMS", "equal"))
    rows: list[tuple[str, LogitDrift]] = [("text", found.text)]
    if found.audio is not None:
        rows.append(("audio", found.audio))
    rows += [(f"codebook {level}", drift) for level, drift in enumerate(found.levels)]
    for name, one in rows:
        table.add_row(name, f"{100 * one.relative_rms:.2f} %", f"{100 * one.match:.1f} %")
    return table


def _table(columns: tuple[str, ...]) -> Table:
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    return table
