"""What ``mimi stream`` shows while it runs: on a terminal a live view, elsewhere a line now and then. All on standard error."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import typer

from codec_core.cli.report import print_warning, printable
from codec_core.client import Frame, Notice, Stream

if TYPE_CHECKING:
    from rich.console import RenderableType

LINE_INTERVAL_S: Final = 1.0
VIEW_INTERVAL_S: Final = 0.1
METER_CELLS: Final = 40
METER_FLOOR_DB: Final = -60.0
SHOWN_LEVELS: Final = 16
SILENCE: Final = 1e-9


class StreamView:
    """What was seen so far, and how to say it."""

    def __init__(self, title: str, *, quiet: bool) -> None:
        self._title = title
        self._quiet = quiet
        self._started_s = time.monotonic()
        self._state = "streaming"
        self._peak = 0.0
        self._power = 0.0
        self._codes: list[int] = []
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
            self._codes = chunk[:, -1].tolist()

    def received(self, frame: Frame) -> None:
        """Take note of an answer: its codes, or its level where the input has none."""
        if frame.codes is not None:
            self._codes = frame.codes.tolist()
        elif frame.pcm is not None and not self._hears_input:
            self._hear(frame.pcm)

    def _hear(self, pcm: npt.NDArray[np.float32]) -> None:
        if pcm.size:
            self._peak = float(np.abs(pcm).max())
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
        rows.add_row("level", self._meter())
        rows.add_row("codes", Text(" ".join(f"{code:4d}" for code in self._codes[:SHOWN_LEVELS]) or "none"))
        times = ", ".join(f"{name} {_ms(value)}" for name, value in stats.latency_ms.items())
        rows.add_row("latency", f"{times} ms")
        rows.add_row("lag", f"{stats.lag_ms:.0f} ms unanswered, {stats.unsent_ms:.0f} ms unsent")
        rows.add_row("frames", f"{stats.answered_frames} in {self.elapsed_s:.0f} s, {stats.resumes} resumes")
        return Panel(rows, title=Text(self._title), subtitle=Text(self._state), title_align="left", subtitle_align="left")

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

        level_db = min(0.0, max(METER_FLOOR_DB, _decibel(self._power) / 2))
        cells = round(METER_CELLS * (1 - level_db / METER_FLOOR_DB))
        colour = "red" if self._peak >= 1 else "green"
        bar = Text("█" * cells, style=colour) + Text("·" * (METER_CELLS - cells), style="dim")
        return bar + Text(f" {_decibel(self._power) / 2:6.1f} dBFS, peak {_decibel(self._peak):.1f}")


def _decibel(amplitude: float) -> float:
    return float(20 * np.log10(max(amplitude, SILENCE)))


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"
