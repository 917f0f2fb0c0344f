"""Comparison with other implementations of Mimi: in one run, on the same weights and signal, one thread each, in turn.

None profits from what another has warmed up or suffers from its threads, since each is a process of its own. They are stepped
in turn, a few calls each, until all have had their time: whatever disturbs the machine meanwhile disturbs all. Figures are
medians of CPU time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
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
    total = len(batches) * (len(peers) + 2)
    for number, batch in enumerate(batches):
        with TemporaryDirectory(prefix="mimi-bench-") as folder, ExitStack() as stack:
            np.save(Path(folder) / "pcm.npy", state.pcm)
            np.save(Path(folder) / "codes.npy", state.codes)
            running = []
            for done, process in enumerate(_open_all(ours, peers, state.levels, batch, Path(folder), comparison, stack)):
                running.append(process)
                progress(number * (len(peers) + 2) + done, total)
            comparison.results += _measure(running, state.levels, batch, seconds)
        progress((number + 1) * (len(peers) + 2), total)
    return comparison


def _open_all(
    ours: Contender,
    peers: Sequence[Contender],
    levels: int,
    batch: int,
    folder: Path,
    comparison: Comparison,
    stack: ExitStack,
) -> Iterator[PeerProcess]:
    """Start and warm up whoever can be; note who cannot."""
    engine = stack.enter_context(PeerProcess(ours))
    engine.open(levels, batch, folder)
    yield engine
    missing: dict[str, list[str]] = {}
    there = set()
    for peer in peers:
        if peer.kind in there:
            continue
        process = stack.enter_context(PeerProcess(peer))
        try:
            process.open(levels, batch, folder)
        except PeerMissingError:
            missing.setdefault(peer.kind, []).append(peer.python)
            continue
        except UnavailableError as error:
            comparison.notices.append(f"batch {batch}: {error.subject}: {error.found}")
        else:
            yield process
        there.add(peer.kind)
    absent = {kind: pythons for kind, pythons in missing.items() if kind not in there}
    notices = [f"{kind}: not installed in {', '.join(pythons)}" for kind, pythons in absent.items()]
    comparison.notices += [notice for notice in notices if notice not in comparison.notices]


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
