"""Prove that this machine computes the published codes."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.text import Text

from codec_core import __version__, _ext
from codec_core.cli.drift_card import show_drift
from codec_core.cli.options import JsonOption, ModelOption
from codec_core.cli.quality_card import show_quality
from codec_core.cli.report import print_json, printable, result_console
from codec_core.errors import SettingError
from codec_core.verify import Check, CheckResult, Plan, run_checks

_NAME_COLUMNS: Final = 44


def command(
    audio: Annotated[list[str] | None, typer.Argument(help="With --drift or --quality: audio to measure on.")] = None,
    *,
    model: ModelOption = "default",
    vectors: Annotated[
        Path | None, typer.Option(help="Folder of golden vectors of the synthetic model; without it, the packaged ones.")
    ] = None,
    numerics: Annotated[
        str | None, typer.Option("--numerics", help="kyutai, ggml or ggml-causal; without it, the first two.")
    ] = None,
    drift: Annotated[
        str | None, typer.Option(metavar="REFERENCE", help="Measure how far MODEL's codes and sound are from this model's.")
    ] = None,
    quality: Annotated[
        bool, typer.Option("--quality", help="Measure how near MODEL's speech is to the audio; needs the extra 'quality'.")
    ] = False,
    levels: Annotated[
        str | None, typer.Option("--levels", "-k", help="With --quality: numbers of levels; without it, 1,4,8,16,32.")
    ] = None,
    recognise: Annotated[
        list[str] | None, typer.Option(metavar="AUDIO", help="With --quality: English audio for a speech recogniser.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="With --drift or --quality: draw it as a PNG; needs the extra 'plot'.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Without the full-size synthetic model and its vectors.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Prove that this machine computes the published codes.

    Regenerates the full-size synthetic model and compares every stage, the codes and the sound of both numerics with golden
    vectors of the public implementations. Then shows on MODEL that nothing else decides a result: not chunks, batches, threads,
    instruction sets, other sessions, a reset or refused input, at the stream's start and past the wrap of its attention ring.

    With --drift nothing is proven but measured: what the weight class of MODEL costs in codes and in sound, on the audio given.
    With --quality: how near MODEL's speech is to that audio, files or folders, by number of levels and by folder.
    """
    if drift is not None:
        show_drift(model, drift, audio or [], numerics=numerics, plot=plot, as_json=as_json)
        return
    if quality:
        asked: dict[str, Any] = {"levels": levels, "recognised": recognise or [], "numerics": numerics}
        show_quality(model, audio or [], **asked, plot=plot, as_json=as_json)
        return
    for name, value in (("audio", audio), ("--plot", plot), ("--levels", levels), ("--recognise", recognise)):
        if value:
            raise SettingError(name, "neither --drift nor --quality", "one of them, which says what to measure")
    begin = time.perf_counter()
    with Plan(model, numerics, vectors, quick) as plan, _Display(shown=not as_json) as display:
        results = []
        for result in run_checks(plan, display.started):
            results.append(result)
            display.finished(result)
    seconds = time.perf_counter() - begin
    if as_json:
        print_json(_fields(plan, results, seconds))
    else:
        display.summary(results, seconds)
    if not all(result.passed for result in results):
        raise typer.Exit(1)


class _Display:
    """A line per check as it is answered; on a terminal, also what is being asked."""

    def __init__(self, shown: bool) -> None:
        self._console = result_console(quiet=not shown)
        self._status = self._console.status("")
        self._group = ""

    def __enter__(self) -> _Display:
        if self._console.is_terminal:
            self._status.start()
        self._console.print(f"mimi {__version__}, instruction sets: {', '.join(_ext.Kernels.usable_isas())}")
        return self

    def __exit__(self, *_error: object) -> None:
        self._status.stop()

    def started(self, check: Check) -> None:
        self._status.update(f"{check.group}: {check.name}")

    def finished(self, result: CheckResult) -> None:
        if result.group != self._group:
            self._group = result.group
            self._console.print(Text(printable(result.group), style="bold"))
        mark = Text("  passed  ", style="green") if result.passed else Text("  FAILED  ", style="bold red")
        name = Text(printable(result.name).ljust(_NAME_COLUMNS))
        self._console.print(mark + name + Text(f"{result.seconds:6.2f} s", style="dim"))
        if not result.passed:
            self._console.print(Text("          " + printable(result.detail), style="red"))

    def summary(self, results: list[CheckResult], seconds: float) -> None:
        failed = sum(not result.passed for result in results)
        style, text = ("bold green", "all passed") if not failed else ("bold red", f"{failed} failed")
        self._console.print(Text(f"{len(results)} checks, {text}, {seconds:.1f} s", style=style))


def _fields(plan: Plan, results: list[CheckResult], seconds: float) -> dict[str, Any]:
    return {
        "passed": all(result.passed for result in results),
        "version": __version__,
        "instruction_sets": _ext.Kernels.usable_isas(),
        "model": str(plan.path),
        "numerics": list(plan.numerics),
        "seconds": round(seconds, 2),
        "checks": [asdict(result) for result in results],
    }
