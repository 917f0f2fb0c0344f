"""What ``mimi stream`` shows while it runs: on a terminal a live view, elsewhere a line now and then. All on standard error."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import typer

from codec_core.cli.code_map import SHOWN_LEVELS, CodeMap
from codec_core.cli.report import print_warning, printable
from codec_core.client import Frame, Notice, Stream

if TYPE_CHECKING:
    from rich.console import RenderableType

LINE_INTERVAL_S: Final = 1.0
VIEW_INTERVAL_S: Final = 0.1
METER_CELLS: Final = 40
METER_FLOOR_DB: Final = -60.0
METER_COLOURS: Final = ((0.7, "green"), (0.9, "yellow"), (1.01, "red"))
"""Up to which share of the meter each goes."""
SHOWN_LATENCIES: Final = 60
SPARKS: Final = "▁▂▃▄▅▆▇█"
HOLD_S: Final = 1.5
SILENCE: Final = 1e-9


class StreamView:
    """What was seen so far, and how to say it.

    Args:
        title: what is streamed where to.
        quiet: whether to say nothing.
        total_frames: how many frames there will be, where that is known beforehand.

    """

    def __init__(self, title: str, *, quiet: bool, total_frames: int | None = None) -> None:
        self._total_frames = total_frames
        self._map = CodeMap()
        self._latencies_ms: deque[float] = deque(maxlen=SHOWN_LATENCIES)
        self._held_peak = 0.0
        self._held_since_s = 0.0
        self._title = title
        self._quiet = quiet
        self._started_s = time.monotonic()
        self._state = "streaming"
        self._peak = 0.0
        self._power = 0.0
        self._hears_input = False
        self._live: Any = None
        self.warnings: list[str] = []

    @property
    def elapsed_s(self) -> float:
        """Time since the start."""
        return time.monotonic() - self._started_s

    def sent(self, chunk: npt.NDArray[Any]) -> None:
        """Take note of input: its codes, or its level."""
        if chunk.dtype == np.float32:
            self._hears_input = True
            self._hear(chunk)
        elif chunk.size:
            for column in chunk.T.tolist():
                self._map.add(column)

    def received(self, frame: Frame) -> None:
        """Take note of an answer: its codes, or its level where the input has none."""
        if frame.latency_ms is not None:
            self._latencies_ms.append(frame.latency_ms)
        if frame.codes is not None:
            self._map.add(frame.codes.tolist())
        elif frame.pcm is not None and not self._hears_input:
            self._hear(frame.pcm)

    def _hear(self, pcm: npt.NDArray[np.float32]) -> None:
        if pcm.size:
            self._peak = float(np.abs(pcm).max())
            if self._peak >= self._held_peak or time.monotonic() - self._held_since_s > HOLD_S:
                self._held_peak, self._held_since_s = self._peak, time.monotonic()
            self._power = float(np.mean(np.square(pcm, dtype=np.float64)))

    def notice(self, notice: Notice) -> None:
        """Take note of what happens on the line, and say it."""
        self._state = {"lost": "line lost, trying again", "goaway": "service goes down"}.get(notice.kind, "streaming")
        text = f"{notice.kind}: {notice.text}".rstrip(": ")
        self.warnings.append(text)
        if not self._quiet:
            print_warning(text)

    def line(self, stream: Stream) -> str:
        """Say where the stream stands, in one line."""
        stats = stream.stats
        p50, p95 = (_ms(stats.latency_ms[name]) for name in ("p50", "p95"))
        counts = (
            f"{self.elapsed_s:.0f} s, {stats.answered_frames} frames, latency {p50} ms, p95 {p95} ms, lag {stats.lag_ms:.0f} ms"
        )
        resumed = f", {stats.resumes} resumes" if stats.resumes else ""
        return f"{self._state}: {counts}{resumed}"

    def rendered(self, stream: Stream) -> RenderableType:
        """Draw the live view."""
        # rich is slow to import, and output that no person sees does not need it.
        from rich.panel import Panel  # noqa: PLC0415
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        stats = stream.stats
        rows = Table.grid(padding=(0, 2))
        rows.add_column(style="dim", justify="right")
        rows.add_column()
        rows.add_row("level", self._meter())
        rows.add_row("codes", self._map.drawn() if self._map.newest else Text("none"))
        rows.add_row("", Text(" ".join(f"{code:4d}" for code in self._map.newest[:SHOWN_LEVELS]), style="dim"))
        times = ", ".join(f"{name} {_ms(value)}" for name, value in stats.latency_ms.items())
        rows.add_row("latency", self._sparks())
        rows.add_row("", f"{times} ms")
        rows.add_row("lag", f"{stats.lag_ms:.0f} ms unanswered, {stats.unsent_ms:.0f} ms unsent")
        rows.add_row("frames", self._progress(stats.answered_frames))
        rows.add_row("", f"{stats.answered_frames} in {self.elapsed_s:.0f} s, {stats.resumes} resumes")
        colour = "green" if self._state == "streaming" else "red"
        ends: dict[str, Any] = {"title_align": "left", "subtitle_align": "left"}
        return Panel(rows, title=Text(self._title), subtitle=Text(self._state, style=colour), **ends)

    @contextlib.contextmanager
    def shown(self, stream: Stream) -> Iterator[float]:
        """Show the view while the context lasts; yields how often :meth:`tick` wants to be called, in seconds."""
        from rich.console import Console  # noqa: PLC0415

        console = Console(stderr=True)
        if not console.is_terminal or self._quiet:
            yield LINE_INTERVAL_S
            return
        from rich.live import Live  # noqa: PLC0415

        with Live(self.rendered(stream), console=console, transient=True, auto_refresh=False) as self._live:
            yield VIEW_INTERVAL_S

    def tick(self, stream: Stream) -> None:
        """Say or draw where the stream stands now."""
        if self._live is not None:
            self._live.update(self.rendered(stream), refresh=True)
        elif not self._quiet:
            typer.echo(printable(self.line(stream)), err=True)

    def _meter(self) -> RenderableType:
        from rich.text import Text  # noqa: PLC0415

        cells, peak_cell = _cells(_decibel(self._power) / 2), _cells(_decibel(self._held_peak))
        bar = Text()
        for cell in range(METER_CELLS):
            style = next(colour for limit, colour in METER_COLOURS if cell < limit * METER_CELLS)
            filled = "█" if cell < cells else "▏" if cell == peak_cell and peak_cell > cells else "·"
            bar.append(filled, style=style if filled != "·" else "dim")
        told = "  clipped" if self._held_peak >= 1 else ""
        bar.append(f" {_decibel(self._power) / 2:6.1f} dBFS, peak {_decibel(self._held_peak):.1f}")
        return bar.append(told, style="bold red")

    def _sparks(self) -> str:
        """Draw the newest latencies, the longest of them as high as can be."""
        longest = max(self._latencies_ms, default=0.0)
        return "".join(
            SPARKS[round((len(SPARKS) - 1) * value / longest)] if longest else SPARKS[0] for value in self._latencies_ms
        )

    def _progress(self, answered_frames: int) -> RenderableType:
        from rich.text import Text  # noqa: PLC0415

        if not self._total_frames:
            return Text("live")
        share = min(1.0, answered_frames / self._total_frames)
        done = round(METER_CELLS * share)
        return Text("━" * done, style="cyan") + Text("━" * (METER_CELLS - done), style="dim") + Text(f" {share:4.0%}")


def _cells(level_db: float) -> int:
    return round(METER_CELLS * (1 - min(0.0, max(METER_FLOOR_DB, level_db)) / METER_FLOOR_DB))


def _decibel(amplitude: float) -> float:
    return float(20 * np.log10(max(amplitude, SILENCE)))


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"
