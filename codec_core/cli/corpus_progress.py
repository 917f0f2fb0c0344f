"""How far a corpus is, on a terminal: files, audio hours, their rate, errors and the time that is left."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Final

from codec_core.corpus.tally import Counts, Tally

_REFRESH_S: Final = 0.5
FRAMES_PER_HOUR: Final = 45_000
"""Frames of 80 ms in an hour of audio."""


@contextlib.contextmanager
def corpus_progress(tally: Tally) -> Iterator[None]:
    """Show a run while it lasts, on a terminal only; nothing of it stays."""
    # rich is slow to import, and other commands do not need it.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    console = Console(stderr=True)
    columns = (
        TextColumn("tokenizing"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TimeRemainingColumn(),
    )
    done = threading.Event()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        counts = tally.counts()
        task = bar.add_task(rate_text(counts), total=counts.inputs)

        def refresh() -> None:
            while not done.wait(_REFRESH_S):
                counts = tally.counts()
                bar.update(task, completed=counts.done, description=rate_text(counts))

        thread = threading.Thread(target=refresh, name="progress", daemon=True)
        if console.is_terminal:
            thread.start()
        try:
            yield
        finally:
            done.set()
            if thread.is_alive():
                thread.join()


def rate_text(counts: Counts) -> str:
    """Return audio hours of this run, audio hours a second, how many times faster than it plays that is, and errors."""
    hours = counts.frames / FRAMES_PER_HOUR
    rate = hours / counts.seconds if counts.seconds > 0 else 0.0
    text = f"{hours:.2f} audio hours, {rate:.4f}/s ({rate * 3600:.0f} x real time)"
    return text if not counts.errors else f"{text}, {counts.errors} errors"
