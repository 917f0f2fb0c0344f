"""Comparison with other implementations of Mimi: in one run, on the same weights and signal, one thread each, in turn.

None profits from what another has warmed up or suffers from its threads, since each is a process of its own. They are stepped
in turn, a few calls each, until all have had their time: whatever disturbs the machine meanwhile disturbs all. Figures are
medians of CPU time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

from codec_core.bench.peers import Contender, PeerMissingError, PeerProcess
from codec_core.bench.streams import Progress, SteadyState
from codec_core.bench.timing import CallTimes
from codec_core.errors import UnavailableError

DIRECTIONS: Final = ("encode", "decode")
FEWEST_TURNS: Final = 3


@dataclass(frozen=True)
class Result:
    """One codec's figures for one direction at one batch size. ``duplex`` is a frame encoded and a frame decoded."""

    kind: str
    name: str
    """With the versions of what ran."""
    batch: int
    levels: int
    direction: str
    calls: int
    cpu_ms_per_frame: float
    """Median CPU time for a frame of one stream."""
    wall_ms_per_frame: float
    our_share: float
    """Our CPU time by this codec's."""
    same_codes: float
    """Share of the codes of the warm-up that equal ours."""


@dataclass
class Comparison:
    """What a comparison found."""

    results: list[Result] = field(default_factory=list)
    """By batch, ours first."""
    notices: list[str] = field(default_factory=list)
    """Who was left out, and why."""


def compare(
    ours: Contender,
    peers: Sequence[Contender],
    state: SteadyState,
    *,
    batches: Sequence[int],
    seconds: float,
    progress: Progress,
) -> Comparison:
    """Step our engine and its peers in turn.

    Args:
        ours: the engine.
        peers: the others; of several of one kind, the first whose interpreter has it runs.
        state: the signal, its codes, and the levels.
        batches: streams in a batch.
        seconds: time of each codec, each direction and each batch.
        progress: called with the codecs warmed up or measured so far, and their number.

    Raises:
        UnavailableError: ours did not run, or an interpreter does not exist.

    """
    comparison = Comparison()
    steps = len(peers) + 2
    for number, batch in enumerate(batches):
        with TemporaryDirectory(prefix="mimi-bench-") as folder, ExitStack() as stack:
            np.save(Path(folder) / "pcm.npy", state.pcm)
            np.save(Path(folder) / "codes.npy", state.codes)
            warm_up = partial(PeerProcess.open, levels=state.levels, batch=batch, folder=Path(folder))
            running = [stack.enter_context(PeerProcess(ours))]
            warm_up(running[0])
            for process in _opened(peers, warm_up, comparison.notices, stack):
                progress(number * steps + len(running), len(batches) * steps)
                running.append(process)
            comparison.results += _measure(running, state.levels, batch, seconds)
        progress((number + 1) * steps, len(batches) * steps)
    return comparison


def _opened(
    peers: Sequence[Contender], warm_up: Callable[[PeerProcess], None], notices: list[str], stack: ExitStack
) -> Iterator[PeerProcess]:
    """Start and warm up whoever can be, and note who cannot."""
    missing: dict[str, list[str]] = {}
    settled = set()
    for peer in peers:
        if peer.kind in settled:
            continue
        process = stack.enter_context(PeerProcess(peer))
        try:
            warm_up(process)
        except PeerMissingError:
            missing.setdefault(peer.kind, []).append(peer.python)
            continue
        except UnavailableError as error:
            _note(notices, f"{error.subject}: {error.found}")
        else:
            yield process
        settled.add(peer.kind)
    for kind, pythons in missing.items():
        if kind not in settled:
            _note(notices, f"{kind}: not installed in {', '.join(pythons)}")


def _note(notices: list[str], notice: str) -> None:
    if notice not in notices:
        notices.append(notice)


def _measure(running: Sequence[PeerProcess], levels: int, batch: int, seconds: float) -> Iterator[Result]:
    by_direction = {direction: _in_turn(running, direction, seconds) for direction in DIRECTIONS}
    times = {
        (direction, place): (
            sum(by_direction[part][place].cpu_ms_median for part in parts) / batch,
            sum(by_direction[part][place].wall_ms_median for part in parts) / batch,
        )
        for direction, parts in {"encode": ["encode"], "decode": ["decode"], "duplex": DIRECTIONS}.items()
        for place in range(len(running))
    }
    calls = len(by_direction["encode"][0].wall_ms)
    for (direction, place), (cpu_ms, wall_ms) in times.items():
        process = running[place]
        frames = len(process.codes)
        yield Result(
            kind=process.contender.kind,
            name=process.name,
            batch=batch,
            levels=levels,
            direction=direction,
            calls=calls,
            cpu_ms_per_frame=cpu_ms,
            wall_ms_per_frame=wall_ms,
            our_share=times[direction, 0][0] / cpu_ms,
            same_codes=float(np.mean(process.codes == running[0].codes[:frames])),
        )


def _in_turn(running: Sequence[PeerProcess], direction: str, seconds: float) -> list[CallTimes]:
    """Return each process's times; all make the same number of calls."""
    turns: list[list[CallTimes]] = [[] for _ in running]
    stop = time.perf_counter() + seconds * len(running)
    while len(turns[0]) < FEWEST_TURNS or time.perf_counter() < stop:
        for process, mine in zip(running, turns, strict=True):
            mine.append(process.time(direction))
    return [
        CallTimes(
            tuple(chain.from_iterable(turn.wall_ms for turn in mine)), tuple(chain.from_iterable(turn.cpu_ms for turn in mine))
        )
        for mine in turns
    ]
