"""The folder of a corpus, and how it remembers what is done.

::

    corpus.json                what it is: settings, fingerprint of the inputs, provenance; written first
    shard-000000.parquet       the rows (other formats: other suffixes, some with a second file for the rows' facts)
    ledger/shard-000000.json   written last of a shard: its files with size and SHA-256, its rows, its errors
    errors.jsonl               the error table, written when all shards are there: the corpus is then complete

A shard is there when its ledger entry is. All files appear by renaming; what a killed process leaves has names that are
removed by the next run. One run at a time holds the folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from codec_core.atomic_file import atomic_output
from codec_core.corpus.formats import parse_json
from codec_core.corpus.rows import ErrorEntry, error_from, to_json
from codec_core.errors import CodesFileError, OutputExistsError, SettingError

SCHEMA_VERSION: Final = 1
DESCRIPTION: Final = "corpus.json"
ERRORS: Final = "errors.jsonl"
LEDGER: Final = "ledger"
_OF_THE_INPUTS: Final = ("inputs", "inputs_sha256")


@dataclass(frozen=True)
class ShardFile:
    """A file of a shard."""

    name: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True)
class LedgerEntry:
    """A shard that is done."""

    number: int
    rows: int
    frames: int
    samples: int
    """At 24 kHz, of all rows."""
    files: tuple[ShardFile, ...]
    errors: tuple[ErrorEntry, ...]


class CorpusFolder:
    """The folder of a corpus. Reading needs nothing; writing wants :meth:`held`, by one process for all that write."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Have the folder to oneself, made if need be.

        Raises:
            OutputExistsError: another run has it. CodesFileError: it cannot be made, or is no folder.

        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as cause:
            raise CodesFileError(str(self.path), f"{cause.strerror}", "a folder that can be written") from cause
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError as cause:
            raise OutputExistsError(str(self.path), "another run at work in it", "one at a time") from cause
        finally:
            os.close(descriptor)

    def clear_partial(self) -> None:
        """Remove unfinished files; nobody may be writing."""
        for folder in (self.path, self.path / LEDGER):
            for left in folder.glob(".*.partial"):
                left.unlink(missing_ok=True)

    def describe(self, description: dict[str, Any]) -> None:
        """Write what the corpus is; where the folder has one already, it must be this one. Clears what a killed run left.

        Raises:
            SettingError: the folder holds another corpus; names what differs.
            OutputExistsError: it holds something else.

        """
        if not (self.path / DESCRIPTION).exists():
            left = f".{DESCRIPTION}."
            if any(not entry.name.startswith(left) for entry in self.path.iterdir()):
                raise OutputExistsError(str(self.path), "files that are no corpus", "an empty or new folder")
            self.clear_partial()
            self._write(DESCRIPTION, json.dumps(description, indent=2) + "\n")
        present = self.description()
        for name, value in description.items():
            if present.get(name) != value:
                what = "inputs" if name in _OF_THE_INPUTS else name
                found = "a corpus of other inputs" if name in _OF_THE_INPUTS else f"{present.get(name)!r}"
                expected = "the same list of inputs" if name in _OF_THE_INPUTS else f"{value!r}"
                raise SettingError(f"{self.path}: {what}", found, f"{expected}; another corpus wants another folder")
        self.clear_partial()
        (self.path / LEDGER).mkdir(exist_ok=True)

    def description(self) -> dict[str, Any]:
        """Return what the corpus is.

        Raises:
            CodesFileError: the folder holds none.

        """
        path = self.path / DESCRIPTION
        try:
            text = path.read_bytes()
        except OSError as cause:
            raise CodesFileError(
                str(self.path), f"no {DESCRIPTION} ({cause.strerror})", "a folder made by mimi tokenize"
            ) from cause
        found = parse_json(text, str(path))
        if not isinstance(found, dict) or found.get("schema") != SCHEMA_VERSION:
            version = found.get("schema") if isinstance(found, dict) else type(found).__name__
            raise CodesFileError(f"{path}: schema", repr(version)[:40], f"{SCHEMA_VERSION}")
        return found

    def recorded(self, number: int) -> LedgerEntry | None:
        """Return what the ledger says of a shard; None where it is not done.

        Raises:
            CodesFileError: the ledger is damaged.

        """
        path = self.path / LEDGER / f"shard-{number:06d}.json"
        try:
            return _entry_from(parse_json(path.read_bytes(), str(path)), str(path))
        except FileNotFoundError:
            return None

    def entry(self, number: int) -> LedgerEntry | None:
        """As :meth:`recorded`; None also where a file of the shard is missing or of another size."""
        entry = self.recorded(number)
        for file in () if entry is None else entry.files:
            try:
                size = (self.path / file.name).stat().st_size
            except FileNotFoundError:
                return None
            if size != file.size_bytes:
                return None
        return entry

    def commit(self, entry: LedgerEntry) -> None:
        """Say that a shard is done, once its files are in place."""
        self._write(f"{LEDGER}/shard-{entry.number:06d}.json", json.dumps(asdict(entry), separators=(",", ":")) + "\n")

    def finish(self, shards: int) -> None:
        """Write the error table: all shards are there."""
        self.clear_partial()
        with atomic_output(self.path / ERRORS, replace=True, error=CodesFileError) as temporary, temporary.open("w") as file:
            for number in range(shards):
                entry = self.entry(number)
                if entry is None:
                    raise CodesFileError(f"{self.path}: shard {number}", "no entry in the ledger", "one, now that all are done")
                file.writelines(to_json(error) + "\n" for error in entry.errors)

    def _write(self, name: str, text: str) -> None:
        with atomic_output(self.path / name, replace=True, error=CodesFileError) as temporary:
            temporary.write_text(text, encoding="utf-8")


def file_facts(path: Path, name: str) -> ShardFile:
    """Return what the ledger keeps of a file."""
    with path.open("rb") as file:
        return ShardFile(name, path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())


def _entry_from(values: Any, subject: str) -> LedgerEntry:
    try:
        counts = {name: int(values[name]) for name in ("number", "rows", "frames", "samples")}
        files = tuple(ShardFile(str(file["name"]), int(file["size_bytes"]), str(file["sha256"])) for file in values["files"])
        errors = tuple(error_from(error, subject) for error in values["errors"])
    except (KeyError, TypeError, ValueError) as cause:
        raise CodesFileError(subject, f"{type(cause).__name__}: {cause}", "an entry of the ledger") from cause
    if any(Path(file.name).name != file.name for file in files):
        raise CodesFileError(f"{subject}: files", "a path", "names of files in the corpus")
    return LedgerEntry(**counts, files=files, errors=errors)
