"""Where two corpora differ, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from codec_core.corpus.reader import Corpus
from codec_core.corpus.rows import ErrorEntry, Row
from codec_core.difference import compare_codes


@dataclass(frozen=True)
class CorpusDifference:
    """One thing that differs."""

    subject: str
    """``corpus``, or a source by its index and name."""
    detail: str
    """What A has, and what B."""


def compare_corpora(first: Corpus, second: Corpus) -> Iterator[CorpusDifference]:
    """Yield what differs between A and B: what made them, rows that only one has, their facts and codes, and the errors.

    Format, shard size and the version of this program are no difference. Both are read once, in order.
    """
    for name in ("levels", "code_dtype", "channels", "inputs"):
        if first.description.get(name) != second.description.get(name):
            yield CorpusDifference("corpus", f"{name}: {first.description.get(name)!r}, {second.description.get(name)!r}")
    for name in ("model_sha256", "weight_class", "numerics"):
        if first.provenance.get(name) != second.provenance.get(name):
            yield CorpusDifference("corpus", f"{name}: {first.provenance.get(name)!r}, {second.provenance.get(name)!r}")
    for one, other in _paired(first.rows(), second.rows()):
        yield from _compare_rows(one, other)
    yield from _compare_errors(first, second)


def _paired(first: Iterator[Row], second: Iterator[Row]) -> Iterator[tuple[Row | None, Row | None]]:
    """Yield the rows of both by index; None where one has no such row."""
    one, other = next(first, None), next(second, None)
    while one is not None or other is not None:
        if other is None or (one is not None and one.facts.index < other.facts.index):
            yield one, None
            one = next(first, None)
        elif one is None or other.facts.index < one.facts.index:
            yield None, other
            other = next(second, None)
        else:
            yield one, other
            one, other = next(first, None), next(second, None)


def _compare_rows(one: Row | None, other: Row | None) -> Iterator[CorpusDifference]:
    if one is None or other is None:
        row = one or other
        if row is not None:
            yield CorpusDifference(_subject(row), f"only in {'B' if one is None else 'A'}")
        return
    theirs = asdict(other.facts)
    for name, value in asdict(one.facts).items():
        if value != theirs[name]:
            yield CorpusDifference(_subject(one), f"{name}: {value!r}, {theirs[name]!r}")
    if (difference := compare_codes(one.codes, other.codes)) is not None:
        yield CorpusDifference(_subject(one), str(difference))


def _compare_errors(first: Corpus, second: Corpus) -> Iterator[CorpusDifference]:
    ours, theirs = ({error.index: error for error in corpus.errors()} for corpus in (first, second))
    for index in sorted(ours.keys() | theirs.keys()):
        if ours.get(index) != theirs.get(index):
            source = (ours.get(index) or theirs[index]).source
            yield CorpusDifference(f"input {index}, {source}", f"error: {_text(ours.get(index))}, {_text(theirs.get(index))}")


def _text(error: ErrorEntry | None) -> str:
    return "none" if error is None else error.message


def _subject(row: Row) -> str:
    return f"input {row.facts.index}, {row.facts.source}"
