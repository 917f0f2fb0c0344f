"""A corpus that is there: its rows in order, one by one or by index, its errors and what made it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import cached_property
from typing import Any, cast

from codec_core.corpus.formats import room_of
from codec_core.corpus.ledger import ERRORS, CorpusFolder, LedgerEntry
from codec_core.corpus.rows import Codes, ErrorEntry, Row
from codec_core.corpus.settings import SHARD_FORMATS, ShardFormat
from codec_core.errors import CodesFileError


class Corpus:
    """The rows of a corpus; made by :func:`codec_core.data.open`.

    An iterable of ``(codes, metadata)``: int16 or uint16 [levels, frames], to be read and not to be written to, and a dict of
    the fields of :class:`~codec_core.corpus.rows.RowFacts`. It may be iterated any number of times, from any thread or
    process; a shard is opened when its first row is due, and read in pieces.
    """

    def __init__(self, path: str | os.PathLike[str], part: int = 0, parts: int = 1) -> None:
        self.folder = CorpusFolder(path)
        self.description: Mapping[str, Any] = self.folder.description()
        """Content of ``corpus.json``."""
        if self.description.get("format") not in SHARD_FORMATS:
            raise CodesFileError(f"{path}: format", repr(self.description.get("format"))[:40], " or ".join(SHARD_FORMATS))
        if not 0 <= part < parts:
            raise CodesFileError("part", f"{part} of {parts}", "a part from 0, and at least one")
        self._part, self._parts = part, parts

    def __repr__(self) -> str:
        return f"<Corpus {self.folder.path}: {len(self)} rows, {self.description['format']}>"

    @property
    def form(self) -> ShardFormat:
        """Format of the shards."""
        return cast(ShardFormat, self.description["format"])

    @property
    def provenance(self) -> Mapping[str, str]:
        """What made the codes."""
        return cast(Mapping[str, str], self.description["provenance"])

    @property
    def levels(self) -> int:
        """RVQ levels."""
        return int(self.description["levels"])

    @property
    def is_complete(self) -> bool:
        """Whether the run that makes it came to its end; before, only the shards committed so far are seen."""
        return (self.folder.path / ERRORS).exists()

    @cached_property
    def ledger(self) -> tuple[LedgerEntry, ...]:
        """The entries of all shards that are done, of this part, as of when they were first asked for."""
        numbers = range(self._part, int(self.description["shards"]), self._parts)
        entries = [self.folder.recorded(number) for number in numbers]
        if self.is_complete and None in entries:
            found = f"no entry for shard {numbers[entries.index(None)]}"
            raise CodesFileError(f"{self.folder.path}: ledger", found, "all, as the corpus is complete")
        return tuple(entry for entry in entries if entry is not None)

    def part(self, number: int, count: int) -> Corpus:
        """Return every ``count``-th shard, from ``number`` on: one of ``count`` parts for as many workers.

        Raises:
            CodesFileError: not 0 <= number < count.

        """
        return Corpus(self.folder.path, self._part + self._parts * number, self._parts * count)

    def __len__(self) -> int:
        return sum(entry.rows for entry in self.ledger)

    def __iter__(self) -> Iterator[tuple[Codes, dict[str, Any]]]:
        for row in self.rows():
            yield row.codes, asdict(row.facts)

    def rows(self) -> Iterator[Row]:
        """Yield all rows in order.

        Raises:
            CodesFileError: a shard is damaged. UnavailableError: its format needs a package that is not installed.

        """
        for entry in self.ledger:
            yield from self.shard_rows(entry)

    def shard_rows(self, entry: LedgerEntry) -> Iterator[Row]:
        """Yield the rows of one shard; as :meth:`rows`."""
        files = [self.folder.path / file.name for file in entry.files]
        count = 0
        for row in room_of(self.form).read_shard(files):
            count += 1
            yield row
        if count != entry.rows:
            raise CodesFileError(str(files[-1]), f"{count} rows", f"{entry.rows}, as the ledger says")

    def row(self, index: int) -> Row:
        """Return the row of one input, by its place in the list of inputs.

        Raises:
            CodesFileError: there is none; says why, where the input failed.

        """
        shard = index // int(self.description["shard_size"])
        for entry in self.ledger:
            if entry.number != shard:
                continue
            for row in self.shard_rows(entry):
                if row.facts.index == index:
                    return row
            for error in entry.errors:
                if error.index == index:
                    raise CodesFileError(
                        f"{self.folder.path}: input {index}", f"an error ({error.code}: {error.message})", "codes"
                    )
        raise CodesFileError(f"{self.folder.path}: input {index}", "no row", f"0 .. {int(self.description['inputs']) - 1}")

    def errors(self) -> Iterator[ErrorEntry]:
        """Yield the error table, as far as it is known."""
        for entry in self.ledger:
            yield from entry.errors
