"""What ``mimi bench`` shows: tables, bars, and sentences on memory and limits."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from codec_core.bench.comparison import Comparison
from codec_core.bench.limits import Peak, Workload
from codec_core.bench.memory import Loading, Memory
from codec_core.bench.speed import Measurement, Speed
from codec_core.bench.stages import StageTimes
from codec_core.cli.report import human_bytes, printable, result_console
from codec_core.model import ModelInfo
from codec_core.window import WindowStats

_BAR_COLUMNS: Final = 40
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_COLUMNS: Final = (
    "direction",
    "batch",
    "ms/frame",
    "CPU ms",
    "ms/call",
    "p95",
    "sessions",
    "a core",
    "limit ms",
    "of limit",
    "x first",
)


def print_report(info: ModelInfo, host: dict[str, Any], speed: Speed, memory: Memory, loading: Loading) -> None:
    """Print everything that was measured of our engine."""
    console = result_console()
    _print_heading(console, info, host)
    first = _first_of_each(speed.measurements)
    for (numerics, isa, threads, levels), rows in groupby(
        speed.measurements, lambda row: (row.numerics, row.isa, row.threads, row.levels)
    ):
        plural = "s" if threads > 1 else ""
        console.print(Text(f"\n{numerics}, {isa}, {threads} thread{plural}, {levels} levels", style="bold"))
        console.print(_speed_table(list(rows), first))
    for peak in speed.peaks:
        console.print(_peak_line(peak))
    for levels, work in speed.workloads.items():
        console.print(_work_line(levels, work))
    for stages in speed.stages:
        _print_stages(console, stages)
    for stats in speed.windows:
        console.print(window_line(stats))
    _print_memory(console, memory, loading)


def window_line(stats: WindowStats) -> str:
    """Sum up what a tensor window has done, in one line."""
    asked = max(stats.hits + stats.stalls, 1)
    return (
        f"tensor window: {human_bytes(stats.bytes_read)} read, {human_bytes(stats.encode_read_bytes)} a frame to encode and"
        f" {human_bytes(stats.decode_read_bytes)} to decode; {100 * stats.hits / asked:.0f} % of layers were there,"
        f" {stats.stall_ms:.0f} ms waited for the others; {stats.major_faults} major page faults"
    )


def print_comparison(info: ModelInfo, host: dict[str, Any], found: Comparison) -> None:
    """Print our figures beside those of peers."""
    console = result_console()
    _print_heading(console, info, host)
    for (batch, levels), rows in groupby(found.results, lambda row: (row.batch, row.levels)):
        console.print(Text(f"\nbatch {batch}, {levels} levels, one thread each: CPU ms of a frame", style="bold"))
        table = _table(("codec", "encode", "decode", "duplex", "ours: encode", "decode", "duplex", "calls", "same codes"))
        for name, of_one in groupby(sorted(rows, key=lambda row: row.name), lambda row: row.name):
            parts = {row.direction: row for row in of_one}
            directions = ("encode", "decode", "duplex")
            times = [f"{parts[direction].cpu_ms_per_frame:.2f}" for direction in directions]
            shares = [f"{parts[direction].our_share:.3f}" for direction in directions]
            one = parts["duplex"]
            table.add_row(printable(name), *times, *shares, str(one.calls), f"{100 * one.same_codes:.1f} %")
        console.print(table)
    console.print("ours: our CPU time by theirs, in the same run; same codes: share of the codes that equal ours")


def _print_heading(console: Console, info: ModelInfo, host: dict[str, Any]) -> None:
    console.print(f"{printable(info.name)}, {info.weight_class}, {info.levels} levels, SHA-256 {info.sha256[:12]}")
    caches = ", ".join(f"{name} {size}" for name, size in host["caches"].items())
    console.print(f"{host['processor']}, {host['cores']} cores; {caches or 'caches unknown'}; load {host['load_before']}")


def _table(columns: Sequence[str]) -> Table:
    table = Table(*columns, box=None, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    return table


def _first_of_each(rows: list[Measurement]) -> dict[tuple[int, str], float]:
    """Return the time of each batch and direction in the first variant: what the others are compared with."""
    first: dict[tuple[int, str], float] = {}
    for row in rows:
        first.setdefault((row.batch, row.direction), row.ms_per_frame_median)
    return first


def _speed_table(rows: list[Measurement], first: dict[tuple[int, str], float]) -> Table:
    table = _table(_COLUMNS)
    for row in rows:
        times = (row.ms_per_frame_median, row.cpu_ms_per_frame_median, row.ms_per_call_median, row.ms_per_call_p95)
        sessions = (f"{row.sessions_in_real_time:.1f}", f"{row.sessions_per_core:.1f}")
        limit = (f"{row.limit_ms_per_frame:.3f}", f"{row.percent_of_limit:.0f} %")
        ratio = f"{row.ms_per_frame_median / first[row.batch, row.direction]:.2f}"
        table.add_row(row.direction, str(row.batch), *(f"{ms:.3f}" for ms in times), *sessions, *limit, ratio)
    return table


def _peak_line(peak: Peak) -> str:
    threads = f"{peak.threads} thread" + ("s" if peak.threads > 1 else "")
    rates = f"{peak.flop_per_s / 1e9:.0f} GFLOP/s, {peak.read_bytes_per_s / 1e9:.1f} GB/s"
    return f"peak of {peak.isa}, {threads}: {rates} (reading {human_bytes(peak.read_bytes)} again and again)"


def _work_line(levels: int, work: Workload) -> str:
    parts = []
    for direction, one in (("encode", work.encode), ("decode", work.decode)):
        amounts = (f"{one.macs / 1e6:.1f} million multiplications", f"{one.weights / 1e6:.1f} million weights")
        parts.append(f"{direction} {', '.join(amounts)}, {human_bytes(one.context_bytes)} of context")
    return f"a frame of {levels} levels: {'; '.join(parts)}"


def _print_stages(console: Console, stages: StageTimes) -> None:
    looking = stages.watched_ms_per_frame - stages.plain_ms_per_frame
    where = f"\n{stages.direction}, batch {stages.batch}, {stages.levels} levels, {stages.numerics}, {stages.isa}, 1 thread"
    console.print(Text(f"{where}: where the time goes", style="bold"))
    in_all = sum(stages.ms_by_stage.values())
    most = max(stages.ms_by_stage.values())
    width = max(len(name) for name in stages.ms_by_stage)
    for name, ms in stages.ms_by_stage.items():
        line = f"  {printable(name).ljust(width)}  {ms:8.3f} ms  {100 * ms / in_all:4.1f} %  "
        console.print(Text(line) + Text(bar(ms / most), style="cyan"))
    console.print(
        f"  {stages.plain_ms_per_frame:.3f} ms a frame unwatched; looking at the clock adds {max(looking, 0.0):.3f} ms"
        f" (medians of {stages.calls} calls each)"
    )


def bar(share: float) -> str:
    """Return a bar of blocks, in eighths of a column, for a share of 0 .. 1."""
    eighths = round(share * _BAR_COLUMNS * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def _print_memory(console: Console, memory: Memory, loading: Loading) -> None:
    words = "within" if memory.within_bound else "ABOVE"
    parts = (
        f"{human_bytes(memory.weights_bytes)} weights",
        f"{human_bytes(memory.session_bytes)} a stream",
        f"{human_bytes(memory.overhead_bytes)} besides ({human_bytes(memory.before_bytes)} before the model)",
    )
    console.print(
        f"\nmemory {human_bytes(memory.in_use_bytes)} with {memory.sessions} duplex streams: {', '.join(parts)};"
        f" {words} {human_bytes(memory.bound_bytes)} = weights + 20 MB a stream + 100 MB"
    )
    console.print(
        f"loading {loading.warm_seconds:.2f} s warm, {loading.cold_seconds:.2f} s cold; takes"
        f" {human_bytes(loading.peak_bytes)} meanwhile, {loading.peak_bytes / loading.file_bytes:.2f} times the file"
    )
