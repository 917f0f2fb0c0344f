"""Manifests: lists of audio files as CSV or as JSON lines, with whatever else is known about each."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from codec_core.corpus.inputs import Source
from codec_core.errors import AudioFileError

PATH_FIELDS: Final = ("path", "file_name", "audio_filepath")
"""Where a row may say where its audio is; the first that the row has."""


def manifest_sources(path: Path) -> Iterator[Source]:
    """Yield a manifest's sources in its order. Relative paths start at the manifest's folder.

    A row is an object with one of :data:`PATH_FIELDS`; its other fields are kept with the codes, as JSON.

    Raises:
        AudioFileError: it cannot be read, is not UTF-8, or a row names no audio file; says which.

    """
    rows = _csv_rows if path.suffix.lower() == ".csv" else _json_rows
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for line, row in rows(path, file):
                yield _source(path, line, row)
    except OSError as cause:
        raise AudioFileError(str(path), f"{cause.strerror}", "a manifest that can be read") from cause
    except UnicodeDecodeError as cause:
        raise AudioFileError(str(path), "bytes that are not UTF-8", "a manifest in UTF-8") from cause


def _csv_rows(path: Path, file: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.DictReader(file, strict=True)
    try:
        for row in reader:
            if None in row or None in row.values():
                raise AudioFileError(f"{path}: line {reader.line_num}", "another number of fields", "those of the header")
            yield reader.line_num, row
    except csv.Error as cause:
        raise AudioFileError(f"{path}: line {reader.line_num}", str(cause), "a row of CSV") from cause


def _json_rows(path: Path, file: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, text in enumerate(file, start=1):
        if not text.strip():
            continue
        try:
            row = json.loads(text)
        except (ValueError, RecursionError) as cause:
            raise AudioFileError(f"{path}: line {line}", "text that is not JSON", "a JSON object") from cause
        if not isinstance(row, dict):
            raise AudioFileError(f"{path}: line {line}", type(row).__name__, "a JSON object")
        yield line, row


def _source(manifest: Path, line: int, row: dict[str, Any]) -> Source:
    field = next((name for name in PATH_FIELDS if name in row), None)
    value = row.get(field) if field else None
    if not isinstance(value, str) or not value or "\0" in value:
        expected = f"the path of an audio file as one of {', '.join(PATH_FIELDS)}"
        raise AudioFileError(f"{manifest}: line {line}", "none" if value is None else repr(value)[:80], expected)
    others = {name: other for name, other in row.items() if name != field}
    fields = json.dumps(others, sort_keys=True, separators=(",", ":")) if others else None
    return Source(os.path.normpath(manifest.parent / value), fields=fields)
