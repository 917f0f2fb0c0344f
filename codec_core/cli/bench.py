"""Measure encoding and decoding on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final

import typer

from codec_core import CodecModel, __version__, _ext
from codec_core.bench.checkpoints import same_weights
from codec_core.bench.comparison import compare
from codec_core.bench.machine import describe_machine
from codec_core.bench.memory import Loading, Memory, measure_memory
from codec_core.bench.peers import OURS, PEERS, Contender
from codec_core.bench.speed import Choice, Speed, measure_speed
from codec_core.bench.streams import SteadyState
from codec_core.cli import bench_report
from codec_core.cli.options import BudgetOption, JsonOption, ModelOption
from codec_core.cli.report import announced_progress, print_json, print_warning, progress_bar
from codec_core.errors import SettingError, UnavailableError
from codec_core.window import BUDGET_VARIABLE

ALL_ISAS: Final = "all"
BATCHES: Final = "1,4,16"
PEER_BATCHES: Final = "1,16"
PEER_LEVELS: Final = 8
_MOST: Final = 4096

PeerPythonOption = Annotated[
    list[Path] | None, typer.Option("--peer-python", help="Interpreter that has peers installed; may be given several times.")
]
PeerWeightsOption = Annotated[
    Path | None,
    typer.Option(
        "--peer-weights", help="Kyutai's checkpoint for all; without it, that of the model or the full synthetic one."
    ),
]


def command(
    *,
    model: ModelOption = "default",
    batch: Annotated[str | None, typer.Option(help="Batch sizes, comma-separated; without it 1,4,16 (peers: 1,16).")] = None,
    levels: Annotated[
        str | None, typer.Option("--levels", "-k", help="RVQ levels, likewise; without it, the model's own.")
    ] = None,
    numerics: Annotated[
        str | None, typer.Option(envvar="MIMI_NUMERICS", help="kyutai,ggml,ggml-causal; else the file's.")
    ] = None,
    isa: Annotated[str, typer.Option(envvar="MIMI_ISA", help="Instruction sets, or all; without it, the best here.")] = "",
    threads: Annotated[str, typer.Option(envvar="MIMI_THREADS", help="Threads of one step, comma-separated.")] = "1",
    ram_budget: BudgetOption = None,
    seconds: Annotated[float, typer.Option(min=0.0, max=600.0, help="Time to spend on each figure.")] = 1.0,
    profile: Annotated[bool, typer.Option("--profile", help="Also show where the time goes, on one thread.")] = False,
    peers: Annotated[bool, typer.Option("--peers", help="Compare with moshi, rustymimi and transformers instead.")] = False,
    peer_python: PeerPythonOption = None,
    peer_weights: PeerWeightsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure encoding and decoding on this machine.

    Streams are first brought to the state of long-running ones (attention context full), then every call is timed. Figures are
    medians, by the clock and in CPU time; the limit is the least time that the model's multiplications and the reading of its
    weights can take on this machine. Memory and loading are measured in processes of their own.
    """
    if ram_budget is not None:
        # For all that is opened from here on, in other processes too.
        os.environ[BUDGET_VARIABLE] = str(ram_budget)
    if peers:
        pythons = [str(path) for path in peer_python or [Path(sys.executable)]]
        # Peers compute what Kyutai's own code does, so ours does.
        sizes = numbers("batch", PEER_BATCHES if batch is None else batch)
        wanted = numbers("levels", str(PEER_LEVELS) if levels is None else levels)
        _compare(
            model,
            batches=sizes,
            levels=wanted,
            seconds=seconds,
            pythons=pythons,
            checkpoint=peer_weights,
            as_json=as_json,
        )
        return
    opened = CodecModel.open(model)
    choice = Choice(
        batches=numbers("batch", BATCHES if batch is None else batch),
        levels=numbers("levels", str(opened.info.default_levels) if levels is None else levels, opened.info.levels),
        numerics=tuple((numerics or opened.info.numerics).split(",")),
        isas=tuple(_ext.Kernels.usable_isas()) if isa == ALL_ISAS else tuple(isa.split(",")),
        threads=numbers("threads", threads),
        seconds=seconds,
        profile=profile,
    )
    _measure(opened, choice, as_json)


def numbers(setting: str, text: str, most: int = _MOST) -> tuple[int, ...]:
    """Read whole numbers of 1 .. ``most`` with commas between them.

    Raises:
        SettingError: anything else.

    """
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() and 1 <= int(part) <= most for part in parts):
        raise SettingError(setting, repr(text), f"numbers of 1 .. {most} with commas between them")
    return tuple(int(part) for part in parts)


def _measure(opened: CodecModel, choice: Choice, as_json: bool) -> None:
    host = describe_machine()
    with progress_bar("measuring") as progress:
        speed = measure_speed(opened, choice, progress)
        memory, loading = measure_memory(opened, max(choice.levels), max(choice.batches))
    for reason in speed.skipped:
        print_warning(f"skipped: {reason}")
    if as_json:
        print_json(_fields(opened, host, speed, memory, loading))
    else:
        bench_report.print_report(opened.info, host, speed, memory, loading)


def _fields(opened: CodecModel, host: dict[str, Any], speed: Speed, memory: Memory, loading: Loading) -> dict[str, Any]:
    return {
        "version": __version__,
        "machine": host,
        "model": asdict(opened.info),
        "results": [asdict(row) for row in speed.measurements],
        "limits": {
            "peaks": [asdict(peak) for peak in speed.peaks],
            "work": {str(levels): asdict(work) for levels, work in speed.workloads.items()},
        },
        "stages": [asdict(stages) for stages in speed.stages],
        "windows": [asdict(stats) for stats in speed.windows],
        "skipped": speed.skipped,
        "memory": asdict(memory) | {"overhead_bytes": memory.overhead_bytes, "within_bound": memory.within_bound},
        "loading": asdict(loading),
    }


def _compare(
    model: str,
    *,
    batches: Sequence[int],
    levels: Sequence[int],
    seconds: float,
    pythons: Sequence[str],
    checkpoint: Path | None,
    as_json: bool,
) -> None:
    if len(levels) != 1:
        raise SettingError("levels", ",".join(map(str, levels)), "one number with --peers")
    host = describe_machine()
    with TemporaryDirectory(prefix="mimi-bench-") as folder, announced_progress("comparing with peers") as progress:
        weights = same_weights(model, checkpoint, Path(folder))
        opened = CodecModel.open(weights.model, "kyutai")
        state = SteadyState.reach(opened, levels[0], lambda _done, _total: None)
        info = opened.info
        del opened
        found = compare(
            Contender(OURS, sys.executable, weights.for_kind(OURS)),
            [Contender(kind, python, weights.for_kind(kind)) for kind in PEERS for python in pythons],
            state,
            batches=batches,
            seconds=seconds,
            progress=progress,
        )
    for notice in found.notices:
        print_warning(notice)
    if all(result.kind == OURS for result in found.results):
        raise UnavailableError("peers", f"none in {', '.join(pythons)}", f"{' or '.join(PEERS)}; --peer-python names another")
    if as_json:
        print_json({"version": __version__, "machine": host, "model": asdict(info), **asdict(found)})
    else:
        bench_report.print_comparison(info, host, found)
