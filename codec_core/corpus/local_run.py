"""A corpus, or some of its shards, on this machine: reading, encoding and writing at the same time, on all cores."""

from __future__ import annotations

import resource
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Final

from codec_core.corpus.assembly import Assembly
from codec_core.corpus.formats import ShardOutput
from codec_core.corpus.inputs import Source
from codec_core.corpus.lanes import LaneWorker, Outcome
from codec_core.corpus.ledger import CorpusFolder
from codec_core.corpus.plan import DEFAULT_LANES, CorpusPlan
from codec_core.corpus.schedule import Schedule
from codec_core.corpus.settings import Shard
from codec_core.corpus.tally import Tally
from codec_core.model import CodecModel

_FEWEST_READERS: Final = 4
_POLL_S: Final = 0.2
_OTHER_FILES: Final = 256
"""Room for what is open besides sources."""


def run_locally(
    model: CodecModel, plan: CorpusPlan, folder: CorpusFolder, tally: Tally, *, workers: int = 1, lanes: int = DEFAULT_LANES
) -> None:
    """Encode what a folder lacks of a corpus, and finish it.

    Args:
        model: opened as the plan says.
        plan: the corpus.
        folder: where it goes; held for the time.
        tally: told of every step.
        workers: batches at a time, each on a thread.
        lanes: sources to a batch.

    Raises:
        SettingError, OutputExistsError: the folder is taken, or is another corpus's. CodesFileError: it cannot be written.

    """
    with folder.held():
        folder.describe(plan.description)
        numbers = plan.pending(folder, tally)
        if numbers:
            shards = [plan.shard(number) for number in numbers]
            encode_shards(model, plan.output, folder, shards, tally, workers=workers, lanes=lanes)
        folder.finish(plan.settings.shards(len(plan.sources)))


def encode_shards(
    model: CodecModel,
    output: ShardOutput,
    folder: CorpusFolder,
    shards: Sequence[Shard],
    tally: Tally,
    *,
    workers: int = 1,
    lanes: int = DEFAULT_LANES,
) -> None:
    """Encode some shards of a corpus into a folder that this run, or the one it is a part of, holds.

    Raises:
        CodesFileError: the folder cannot be written. What was committed before stays.

    """
    readers = max(_FEWEST_READERS, workers)
    _allow_open_files((workers + 1) * lanes + _OTHER_FILES)
    with (
        ThreadPoolExecutor(readers, thread_name_prefix="readers") as pool,
        Assembly(folder, output, tally.commit) as assembly,
    ):
        schedule = Schedule(
            _announced(shards, assembly),
            sum(len(shard.sources) for shard in shards),
            workers=workers,
            frame_samples=model.info.frame_samples,
            readers=pool,
            ahead=lanes,
        )
        _run_workers(model, output.header.levels, schedule, assembly=assembly, tally=tally, workers=workers, lanes=lanes)


def _allow_open_files(count: int) -> None:
    """Raise the number of files this process may have open at once, as far as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft not in (resource.RLIM_INFINITY, hard) and soft < count:
        most = count if hard == resource.RLIM_INFINITY else min(count, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _announced(shards: Iterable[Shard], assembly: Assembly) -> Iterator[tuple[int, Source]]:
    """Yield all sources with their indexes, and announce each shard when its first source is due."""
    for shard in shards:
        assembly.expect(shard)
        yield from enumerate(shard.sources, start=shard.first)


def _run_workers(
    model: CodecModel, levels: int, schedule: Schedule, *, assembly: Assembly, tally: Tally, workers: int, lanes: int
) -> None:
    """Run the workers to their end. If one fails, or this thread is interrupted, the others stop after their step."""
    stop = threading.Event()

    def deliver(outcome: Outcome) -> None:
        tally.source_done(failed=outcome.error is not None)
        assembly.deliver(outcome)

    with ThreadPoolExecutor(workers, thread_name_prefix="lanes") as pool:
        made = [
            LaneWorker(model, levels, lanes, schedule, deliver=deliver, stepped=tally.add_frames, stop=stop)
            for _ in range(workers)
        ]
        running = [pool.submit(worker.run) for worker in made]
        try:
            while wait(running, timeout=_POLL_S, return_when=FIRST_EXCEPTION).not_done:
                if any(future.done() and future.exception() for future in running):
                    break
        finally:
            stop.set()
        for future in running:
            future.result()
