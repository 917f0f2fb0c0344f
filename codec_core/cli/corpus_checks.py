"""What ``mimi tokenize`` does with corpora that are there: check, compare and describe them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Final

import typer

from codec_core import CodecModel
from codec_core.cli.report import print_json, printable, progress_bar
from codec_core.corpus.difference import CorpusDifference, compare_corpora
from codec_core.corpus.reader import Corpus
from codec_core.corpus.report import write_report
from codec_core.corpus.verify import verify_corpus

_MOST_SHOWN: Final = 20


def verify_sample(folder: str, model: str, sample: int, seed: int, *, as_json: bool) -> None:
    """Check a corpus and re-encode a sample of it; exit 1 where something is not as it should be."""
    corpus = Corpus(folder)
    with progress_bar("verifying") as progress:
        opened = CodecModel.open(model, numerics=corpus.provenance.get("numerics"))
        result = verify_corpus(corpus, opened, sample, seed, progress)
    if as_json:
        print_json({"corpus": folder, **asdict(result)})
    else:
        for finding in result.findings:
            typer.echo(printable(f"{finding.subject}: {finding.detail}"))
        wrong = f", {len(result.findings)} findings" if result.findings else ": all as written"
        typer.echo(f"{folder}: {result.files} files checked, {result.rows} rows re-encoded{wrong}")
    if result.findings:
        raise typer.Exit(1)


def diff_corpora(first: str, second: str, *, as_json: bool) -> None:
    """Print what differs between two corpora; exit 1 where something does."""
    shown: list[CorpusDifference] = []
    count = 0
    for difference in compare_corpora(Corpus(first), Corpus(second)):
        count += 1
        if len(shown) < _MOST_SHOWN:
            shown.append(difference)
    if as_json:
        print_json({"a": first, "b": second, "differences": count, "first": [asdict(difference) for difference in shown]})
    else:
        for difference in shown:
            typer.echo(printable(f"{difference.subject}: {difference.detail}"))
        typer.echo(f"{count} differences" if count else "no difference")
    if count:
        raise typer.Exit(1)


def describe_corpus(folder: str, output: Path | None, *, as_json: bool) -> None:
    """Write the report of a corpus."""
    destination = output or Path(folder) / "report.html"
    with progress_bar("reading") as progress:
        statistics = write_report(Corpus(folder), destination, progress)
    if as_json:
        print_json({"output": str(destination), "perplexity": statistics.perplexities()})
    else:
        typer.echo(f"{destination}: {statistics.rows} rows, {len(statistics.perplexities())} levels")
