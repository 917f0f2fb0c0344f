"""Shards as WebDataset tars: of each row ``INDEX.npy``, its codes [levels, frames], and ``INDEX.json``, all else."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Final

import numpy as np

from codec_core.corpus.formats import ShardHeader, checked_row, parse_json
from codec_core.corpus.rows import Row, facts_from
from codec_core.errors import CodesFileError

SUFFIXES: Final = (".tar",)


def write_shard(files: list[Path], rows: Iterable[Row], header: ShardHeader) -> None:
    """Write two members to a row. Members have no owner and no time, so that equal rows make equal bytes."""
    (path,) = files
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for row in rows:
            stream = io.BytesIO()
            codes = np.ascontiguousarray(row.codes, np.dtype(header.dtype).newbyteorder("<"))
            np.lib.format.write_array(stream, codes, version=(1, 0), allow_pickle=False)
            facts = asdict(row.facts) | {"provenance": dict(header.provenance)}
            _add(tar, f"{row.facts.index:09d}.npy", stream.getvalue())
            _add(tar, f"{row.facts.index:09d}.json", json.dumps(facts, separators=(",", ":")).encode())


def read_shard(files: list[Path]) -> Iterator[Row]:
    """Yield the rows, one in memory at a time."""
    (path,) = files
    try:
        with tarfile.open(path, "r:") as tar:
            for member in tar:
                if not member.name.endswith(".npy"):
                    continue
                array = np.load(io.BytesIO(_content(tar, member)), allow_pickle=False)
                described = tar.next()
                if described is None or described.name != member.name.removesuffix(".npy") + ".json":
                    raise CodesFileError(f"{path}: {member.name}", "no .json of that name behind it", "both")
                subject = f"{path}: {described.name}"
                facts = facts_from(parse_json(_content(tar, described), subject), subject)
                yield checked_row(facts, array, str(path))
    except OSError as cause:
        raise CodesFileError(str(path), cause.strerror or str(cause), "a readable file") from cause
    except (tarfile.TarError, ValueError, EOFError) as cause:
        raise CodesFileError(str(path), str(cause), "a tar of .npy and .json files") from cause


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member)
    if file is None:
        raise CodesFileError(member.name, "no regular file", "one")
    return file.read()
