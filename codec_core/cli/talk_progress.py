"""How long ``mimi talk`` will take: measured before it starts, corrected while it runs."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Iterator
from typing import Final

import numpy as np
import typer

from codec_core.cli.report import Progress, progress_bar
from codec_core.cli.talk_models import Choices, TalkModels, new_session
from codec_core.talk import FRAME_S, Talk

WARM_UP_FRAMES: Final = 4
LINE_INTERVAL_S: Final = 10.0


def measured_frame_s(models: TalkModels, choices: Choices) -> float:
    """Time some frames of a conversation that nobody hears: the median of those behind the first, which is stepped twice."""
    talk = Talk(models.codec, models.language, new_session(models, choices, prompted=False), models.tokenizer)
    silence = np.zeros(models.codec.info.frame_samples, np.float32)
    times_s = []
    for _ in range(WARM_UP_FRAMES):
        started_s = time.perf_counter()
        talk.hear(silence)
        times_s.append(time.perf_counter() - started_s)
    return statistics.median(times_s[1:])


class TalkProgress:
    """Says how long it will take, and how long it still takes: a bar on a terminal, elsewhere a line now and then.

    Args:
        frames: how many there will be, as far as is known.
        frame_s: what one takes, as measured.
        quiet: whether to say nothing.

    """

    def __init__(self, frames: int, frame_s: float, *, quiet: bool) -> None:
        self._frames = frames
        self._frame_s = frame_s
        self._quiet = quiet
        self._bar: Progress | None = None
        self._started_s = self._told_s = time.monotonic()

    def estimate(self) -> str:
        """Say what was measured and what that comes to."""
        factor = self._frame_s / FRAME_S
        speed = f"{self._frame_s * 1000:.0f} ms a frame, {factor:.2f} times real time"
        return f"about {duration(self._frames * self._frame_s)} for {self._frames} frames: {speed}"

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Tell the estimate, and show progress while the context lasts."""
        if self._quiet:
            yield
            return
        typer.echo(self.estimate(), err=True)
        with progress_bar("talking") as self._bar:
            self._started_s = self._told_s = time.monotonic()
            yield

    def done(self, frames: int) -> None:
        """Take note of frames that are done."""
        now_s = time.monotonic()
        if self._bar is not None:
            self._bar(frames, self._frames)
        if not self._quiet and now_s - self._told_s >= LINE_INTERVAL_S:
            self._told_s = now_s
            typer.echo(self.line(frames, now_s - self._started_s), err=True)

    def line(self, frames: int, elapsed_s: float) -> str:
        """Say where it stands, with what the frames so far have really taken."""
        left_s = max(0, self._frames - frames) * elapsed_s / frames
        return f"{frames} of {self._frames} frames, about {duration(left_s)} left"


def duration(seconds: float) -> str:
    """Return a time as one says it."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
