"""Encode a corpus of audio files to shards of codes; check, compare or describe such a corpus."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from codec_core import CodecModel
from codec_core.cli.corpus_checks import describe_corpus, diff_corpora, verify_sample
from codec_core.cli.corpus_progress import corpus_progress
from codec_core.cli.options import JsonOption, LevelsOption, ModelOption, NumericsOption
from codec_core.cli.report import print_json, print_warning
from codec_core.corpus.ledger import ERRORS, CorpusFolder
from codec_core.corpus.local_run import run_locally
from codec_core.corpus.plan import DEFAULT_LANES, CorpusPlan, find_sources, make_plan, share_out
from codec_core.corpus.settings import MIX, CorpusSettings, ShardFormat
from codec_core.corpus.tally import Counts, Tally
from codec_core.errors import SettingError

SOME_FAILED: Final = 3
"""Exit status of a run that came to its end and left inputs in the error table."""

_INPUT_HELP: Final = (
    "Audio files, folders, globs, manifests (.csv, .jsonl), WebDataset tars; or corpora, for the last three options."
)
_CHANNELS_HELP: Final = "mix: the mean of all; split: each channel a row; or one channel's number, from 0."
_THREADS_HELP: Final = "Threads in all, one for each core unless given; with --ray, of each actor, 1 unless given."
_RAY_HELP: Final = "Run on a Ray cluster: local, auto (the one this machine is in) or its address."


def command(
    inputs: Annotated[list[str], typer.Argument(metavar="INPUT...", help=_INPUT_HELP)],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Folder of the corpus; a run continues there.")] = None,
    *,
    levels: LevelsOption = None,
    model: ModelOption = "default",
    numerics: NumericsOption = None,
    form: Annotated[ShardFormat, typer.Option("--format", help="Format of the shards.")] = "parquet",
    shard_size: Annotated[int, typer.Option(help="Inputs to a shard.")] = 1000,
    channels: Annotated[str, typer.Option(help=_CHANNELS_HELP)] = MIX,
    lanes: Annotated[int, typer.Option(min=1, max=4096, help="Inputs a worker encodes at once.")] = DEFAULT_LANES,
    threads: Annotated[int | None, typer.Option(min=1, envvar="MIMI_THREADS", help=_THREADS_HELP)] = None,
    ray: Annotated[str | None, typer.Option("--ray", metavar="ADDRESS", help=_RAY_HELP)] = None,
    actors: Annotated[int, typer.Option(min=1, help="With --ray: how many work at a time.")] = 2,
    verify: Annotated[bool, typer.Option("--verify", help="Check the corpus INPUT; re-encode a sample of it.")] = False,
    sample: Annotated[int, typer.Option(min=0, help="Rows that --verify re-encodes.")] = 16,
    seed: Annotated[int, typer.Option(help="Which rows --verify draws.")] = 0,
    diff: Annotated[bool, typer.Option("--diff", help="Compare two corpora, row by row.")] = False,
    report: Annotated[bool, typer.Option("--report", help="Describe the corpus INPUT in an HTML file.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Encode a corpus of audio files to shards of codes; check, compare or describe such a corpus.

    Codes equal those of mimi encode. Inputs that cannot be encoded go to the error table, and the exit status is then 3. A run
    that was stopped, in whatever way, continues with the same command, to the same bytes.
    """
    modes = [name for name, wanted in (("--verify", verify), ("--diff", diff), ("--report", report)) if wanted]
    if len(modes) > 1:
        raise SettingError("options", " and ".join(modes), "one of them")
    if verify:
        verify_sample(_only(inputs, 1, "--verify")[0], model, sample, seed, as_json=as_json)
    elif diff:
        diff_corpora(*_only(inputs, 2, "--diff"), as_json=as_json)
    elif report:
        describe_corpus(_only(inputs, 1, "--report")[0], output, as_json=as_json)
    elif output is None:
        raise SettingError("--output", "none", "a folder for the corpus")
    else:
        settings = CorpusSettings(levels, form, shard_size, channels)
        cluster = None if ray is None else Cluster(ray, actors)
        done = _encode(inputs, output, settings, (model, numerics), Effort(threads, lanes, cluster))
        _conclude(output, *done, as_json=as_json)


def _only(inputs: list[str], count: int, option: str) -> list[str]:
    if len(inputs) != count:
        raise SettingError(option, f"{len(inputs)} inputs", f"{count}: folders made by mimi tokenize")
    return inputs


@dataclass(frozen=True)
class Cluster:
    """Where to run, if not here."""

    address: str
    actors: int


@dataclass(frozen=True)
class Effort:
    """How much of which machines a run may take; nothing of it shows in the output."""

    threads: int | None
    lanes: int
    cluster: Cluster | None


def _encode(
    inputs: list[str], output: Path, settings: CorpusSettings, model: tuple[str, str | None], effort: Effort
) -> tuple[CorpusPlan, Counts]:
    """Encode a corpus, and return what it is and what was done."""
    name, numerics = model
    sources = find_sources(inputs, settings, output)
    workers, step_threads = share_out(len(sources), effort.threads)
    opened = CodecModel.open(name, numerics=numerics, threads=step_threads)
    plan = make_plan(opened, sources, settings)
    tally, folder = Tally(len(sources)), CorpusFolder(output)
    with corpus_progress(tally):
        if effort.cluster is None:
            run_locally(opened, plan, folder, tally, workers=workers, lanes=effort.lanes)
        else:
            from codec_core.corpus.ray_run import Pool, run_on_ray  # noqa: PLC0415 - Ray is wanted here only

            pool = Pool(effort.cluster.address, effort.cluster.actors, effort.threads or 1, effort.lanes)
            run_on_ray(name, plan, folder, tally, pool)
    return plan, tally.counts()


def _conclude(output: Path, plan: CorpusPlan, counts: Counts, *, as_json: bool) -> None:
    """Say what came of a run, and exit by it."""
    hours = counts.samples / plan.description["sample_rate_hz"] / 3600
    if as_json:
        print_json({"output": str(output), **asdict(counts), "audio_hours": hours, "corpus": plan.description})
    else:
        typer.echo(f"{output}: {counts.rows} rows, {hours:.3f} audio hours, {counts.shards} shards, {counts.errors} errors")
    if counts.errors:
        print_warning(f"{counts.errors} of {counts.inputs} inputs were not encoded; {output / ERRORS} says why")
        raise typer.Exit(SOME_FAILED)
