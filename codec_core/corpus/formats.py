"""The formats of a shard: how rows become files, and files rows again."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, cast

from codec_core.corpus.rows import Codes, Row, RowFacts, facts_from
from codec_core.corpus.settings import ShardFormat
from codec_core.errors import CodesFileError

ROWS_SUFFIX: Final = ".rows.jsonl"
"""Suffix of the file beside a shard with its rows' facts, in the formats that have no place for them."""


@dataclass(frozen=True)
class ShardHeader:
    """What a shard's files say of all its rows."""

    levels: int
    dtype: str
    """Element type of the codes, ``int16`` or ``uint16``."""
    provenance: Mapping[str, str]
    """What made the codes."""


@dataclass(frozen=True)
class ShardOutput:
    """What shards are made into: all that encoding some of a corpus needs to know of the whole."""

    form: ShardFormat
    header: ShardHeader


class ShardRoom(Protocol):
    """One format. Both calls hold a bounded part of the shard in memory."""

    SUFFIXES: tuple[str, ...]
    """Suffixes of a shard's files, in the order in which they are written."""

    def write_shard(self, files: list[Path], rows: Iterable[Row], header: ShardHeader) -> None:
        """Write empty files, one to a suffix; nothing in them but the arguments' content."""

    def read_shard(self, files: list[Path]) -> Iterator[Row]:
        """Yield the rows of a shard in order.

        Raises:
            CodesFileError: the files are not what :meth:`write_shard` writes.

        """


_ROOMS: Final[dict[ShardFormat, str]] = {
    "parquet": "codec_core.corpus.parquet_shard",
    "webdataset": "codec_core.corpus.webdataset_shard",
    "npy": "codec_core.corpus.npy_shard",
    "safetensors": "codec_core.corpus.safetensors_shard",
}


def room_of(form: ShardFormat) -> ShardRoom:
    """Return the room of a format.

    Raises:
        UnavailableError: it needs a package that is not installed.

    """
    return cast(ShardRoom, importlib.import_module(_ROOMS[form]))


def read_facts(path: Path) -> list[RowFacts]:
    """Read a file of rows' facts.

    Raises:
        CodesFileError: it cannot be read, or holds something else.

    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as cause:
        raise CodesFileError(str(path), str(cause), "a file of rows") from cause
    return [facts_from(parse_json(line, f"{path}: line {at}"), f"{path}: line {at}") for at, line in enumerate(lines, start=1)]


def parse_json(text: str | bytes, subject: str) -> Any:
    """Return JSON's value.

    Raises:
        CodesFileError: it is none.

    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as cause:
        raise CodesFileError(subject, "text that is not JSON", "a JSON object") from cause


def checked_row(facts: RowFacts, codes: Codes, subject: str) -> Row:
    """Put facts and codes together.

    Raises:
        CodesFileError: they are not of one another.

    """
    if codes.ndim != 2 or codes.dtype not in ("<i2", "<u2") or codes.shape[1] != facts.frames:
        found = f"{codes.dtype} {list(codes.shape)}"
        raise CodesFileError(f"{subject}: row {facts.index}", found, f"int16 or uint16 [levels, {facts.frames}]")
    return Row(facts, codes)
