"""Shards as safetensors files: a tensor [levels, frames] to a row, named by the row's index, beside the rows' facts."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import numpy as np

from codec_core.corpus.formats import ROWS_SUFFIX, ShardHeader, checked_row, read_facts
from codec_core.corpus.rows import Row, to_json
from codec_core.errors import CodesFileError
from codec_core.safetensors_file import build_header, read_header

SUFFIXES: Final = (ROWS_SUFFIX, ".safetensors")
_DTYPES: Final = {"int16": "I16", "uint16": "U16"}


def write_shard(files: list[Path], rows: Iterable[Row], header: ShardHeader) -> None:
    """Write the payloads beside the file first: the header needs all their sizes."""
    facts_path, tensors_path = files
    tensors: list[tuple[str, str, tuple[int, ...]]] = []
    with facts_path.open("w", encoding="utf-8") as facts, tempfile.TemporaryFile(dir=tensors_path.parent) as payloads:
        for row in rows:
            facts.write(to_json(row.facts) + "\n")
            payloads.write(np.ascontiguousarray(row.codes, np.dtype(header.dtype).newbyteorder("<")).tobytes())
            tensors.append((str(row.facts.index), _DTYPES[header.dtype], (header.levels, row.facts.frames)))
        payloads.seek(0)
        with tensors_path.open("wb") as file:
            file.write(build_header(tensors, header.provenance))
            shutil.copyfileobj(payloads, file)


def read_shard(files: list[Path]) -> Iterator[Row]:
    """Yield the rows, one tensor in memory at a time."""
    facts_path, tensors_path = files
    subject = str(tensors_path)
    try:
        with tensors_path.open("rb") as file:
            size = tensors_path.stat().st_size

            def read(offset_bytes: int, size_bytes: int) -> bytes:
                file.seek(offset_bytes)
                return file.read(size_bytes)

            header = read_header(read, size, error=CodesFileError, subject=subject)
            for facts in read_facts(facts_path):
                tensor = header.tensors.get(str(facts.index))
                if tensor is None or tensor.dtype not in _DTYPES.values():
                    raise CodesFileError(f"{subject}: {facts.index}", "no such tensor", "int16 or uint16 [levels, frames]")
                payload = read(tensor.offset_bytes, tensor.size_bytes)
                codes = np.frombuffer(payload, "<i2" if tensor.dtype == "I16" else "<u2").reshape(tensor.shape)
                yield checked_row(facts, codes, subject)
    except OSError as cause:
        raise CodesFileError(subject, f"{cause.strerror}", "a readable file") from cause
