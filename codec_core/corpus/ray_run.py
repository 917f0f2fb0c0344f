"""A corpus on a Ray cluster: the same shards by the same code, each by whichever actor is free.

Ray Data streams shards to a pool of actors; each actor opens the model once and writes its shards and their ledger entries
into the folder, which all machines must see under one path, as they must the sources. The folder is held by the process that
calls; what a dying actor had not committed is done again by another. Needs Ray, the extra ``ray``.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from codec_core.corpus.formats import ShardOutput
from codec_core.corpus.ledger import CorpusFolder
from codec_core.corpus.local_run import encode_shards
from codec_core.corpus.plan import CorpusPlan
from codec_core.corpus.settings import Shard
from codec_core.corpus.tally import Tally
from codec_core.errors import CodecError, SettingError, UnavailableError
from codec_core.model import CodecModel
from codec_core.provenance import provenance

try:
    import ray
    import ray.data
except ImportError as cause:
    raise UnavailableError("--ray", f"no Ray ({cause})", "the extra ray (pip install 'mimi-server[ray]')") from cause

_KNOCK_S: Final = 10
LOCAL: Final = "local"
"""Address that starts a cluster on this machine for the time of the run."""
_SHARDS_TO_AN_ACTOR: Final = 4
"""From so many on, an actor takes two at a time, whose sources share its batches: these then run dry half as often."""


@dataclass(frozen=True)
class Pool:
    """The actors, and what each is given."""

    address: str
    """Of the cluster: :data:`LOCAL`, ``auto`` for the one this machine is in, or ``HOST:PORT``."""
    actors: int
    """How many at a time."""
    threads: int
    """Cores to each, and batches at a time in it."""
    lanes: int
    """Sources to a batch."""


@dataclass(frozen=True)
class Task:
    """What every actor is told."""

    model: str
    output: ShardOutput
    folder: str
    working_folder: str
    """Where relative paths of sources and model start."""
    threads: int
    lanes: int


class ShardEncoder:
    """An actor: opens the model, then encodes shards until there are none."""

    def __init__(self, task: Task) -> None:
        """Open the model.

        Raises:
            SettingError: this machine has another model, or another version of this program.
            UnavailableError: the working folder is not there.

        """
        try:
            os.chdir(task.working_folder)
        except OSError as cause:
            raise UnavailableError(task.working_folder, f"{cause.strerror}", "the same folder on every machine") from cause
        made_by = task.output.header.provenance
        self._model = CodecModel.open(task.model, numerics=made_by["numerics"], threads=1)
        if provenance(self._model) != made_by:
            raise SettingError("model", f"{provenance(self._model)}", f"{made_by}, on every machine")
        self._task = task

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Encode pickled shards; return their numbers, once they are in the ledger."""
        shards: list[Shard] = [pickle.loads(shard) for shard in batch["shard"]]  # noqa: S301 - pickled by this run
        tally = Tally(sum(len(shard.sources) for shard in shards))
        task = self._task
        folder = CorpusFolder(task.folder)
        encode_shards(self._model, task.output, folder, shards, tally, workers=task.threads, lanes=task.lanes)
        return {"number": [shard.number for shard in shards]}


def run_on_ray(model: str, plan: CorpusPlan, folder: CorpusFolder, tally: Tally, pool: Pool) -> None:
    """Encode what a folder lacks of a corpus on a cluster, and finish it; as :func:`~codec_core.corpus.local_run.run_locally`.

    Args:
        model: path or name, the same on every machine.
        plan: the corpus.
        folder: where it goes; held for the time.
        tally: told of every shard.
        pool: the actors.

    Raises:
        UnavailableError: no cluster at the address, a cluster without room for an actor, or an actor that failed in a way of
            its own. Otherwise as a local run.

    """
    with folder.held():
        folder.describe(plan.description)
        numbers = plan.pending(folder, tally)
        task = Task(model, plan.output, os.fspath(folder.path.resolve()), os.fspath(Path.cwd()), pool.threads, pool.lanes)
        if numbers:
            for number in _committed(task, plan, numbers, pool):
                entry = folder.entry(number)
                if entry is None:
                    raise UnavailableError(f"shard {number}", "no files of it here", "a folder that all machines see")
                tally.count_elsewhere(entry)
        folder.finish(plan.settings.shards(len(plan.sources)))


def _committed(task: Task, plan: CorpusPlan, numbers: list[int], pool: Pool) -> Iterator[int]:
    """Yield the number of each shard when it is done."""
    with _cluster(pool):
        actors = min(pool.actors, len(numbers))
        items = [{"shard": pickle.dumps(plan.shard(number))} for number in numbers]
        done = ray.data.from_items(items, override_num_blocks=len(items)).map_batches(
            ShardEncoder,
            fn_constructor_args=(task,),
            batch_size=2 if len(numbers) >= _SHARDS_TO_AN_ACTOR * actors else 1,
            compute=ray.data.ActorPoolStrategy(size=actors),
            num_cpus=pool.threads,
        )
        for row in done.iter_rows():
            yield int(row["number"])


@contextlib.contextmanager
def _cluster(pool: Pool) -> Iterator[None]:
    """Connect to the cluster, and say of what goes wrong in it what our own error tree says."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    settings: dict[str, Any] = {"logging_level": "error", "log_to_driver": False}
    if pool.address == LOCAL:
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
        settings |= {"include_dashboard": False, "num_cpus": pool.actors * pool.threads}
    try:
        _require_reachable(pool.address)
        ray.init(address=pool.address, **settings)
    except (OSError, ValueError) as cause:
        raise UnavailableError(f"--ray {pool.address}", _first_line(cause), "local, auto or a cluster's address") from cause
    try:
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.print_on_execution_start = False
        for name in ("ray", "ray.data"):
            logging.getLogger(name).setLevel(logging.ERROR)
        yield
    except ray.exceptions.RayError as error:
        reason: BaseException | None = error
        while reason is not None and not isinstance(reason, CodecError):
            reason = getattr(reason, "cause", None) or reason.__cause__
        if reason is not None:
            raise reason from None
        raise UnavailableError(f"--ray {pool.address}", _first_line(error), "an actor that runs to its end") from error
    finally:
        ray.shutdown()


def _require_reachable(address: str) -> None:
    """Knock at an address ``HOST:PORT``, where Ray itself would try for minutes.

    Raises:
        OSError: nobody is there.

    """
    host, _, port = address.rpartition(":")
    if "/" not in address and port.isdigit():
        socket.create_connection((host, int(port)), timeout=_KNOCK_S).close()


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
