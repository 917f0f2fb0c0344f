"""Shards as one NumPy array of all frames, [frames, levels], beside the rows' facts; a row is a slice of a memory map."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import numpy as np

from codec_core.corpus.formats import ROWS_SUFFIX, ShardHeader, checked_row, read_facts
from codec_core.corpus.rows import Row, to_json
from codec_core.errors import CodesFileError

SUFFIXES: Final = (ROWS_SUFFIX, ".npy")
_HEADER_BYTES: Final = 128


def write_shard(files: list[Path], rows: Iterable[Row], header: ShardHeader) -> None:
    """Write the rows one after the other. The header, which tells how many frames there are, is written last."""
    facts_path, array_path = files
    dtype = np.dtype(header.dtype).newbyteorder("<")
    frames = 0
    with facts_path.open("w", encoding="utf-8") as facts, array_path.open("wb") as array:
        array.write(bytes(_HEADER_BYTES))
        for row in rows:
            facts.write(to_json(row.facts) + "\n")
            array.write(row.codes.T.astype(dtype).tobytes())
            frames += row.facts.frames
        array.seek(0)
        description = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': ({frames}, {header.levels}), }}"
        length = _HEADER_BYTES - 10
        array.write(b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little") + description.ljust(length - 1).encode() + b"\n")


def read_shard(files: list[Path]) -> Iterator[Row]:
    """Yield rows whose codes are views of the memory-mapped file."""
    facts_path, array_path = files
    try:
        array = np.load(array_path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as cause:
        raise CodesFileError(str(array_path), str(cause), "an array of codes [frames, levels]") from cause
    facts = read_facts(facts_path)
    if array.ndim != 2 or sum(row.frames for row in facts) != len(array):
        raise CodesFileError(str(array_path), f"shape {list(array.shape)}", f"[frames, levels] of the rows in {facts_path}")
    at = 0
    for row in facts:
        yield checked_row(row, array[at : at + row.frames].T, str(array_path))
        at += row.frames
