"""Shards as Parquet files: the facts of a row in columns, its codes as a list of levels, each a list of frames.

Needs pyarrow, the extra ``tokenize``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final

import numpy as np

from codec_core.corpus.formats import ShardHeader, checked_row
from codec_core.corpus.rows import Row, RowFacts, facts_from
from codec_core.errors import CodesFileError, UnavailableError

try:
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]
except ImportError as cause:
    raise UnavailableError(
        "format parquet", "no pyarrow", "the extra tokenize (pip install 'mimi-server[tokenize]'), or --format npy"
    ) from cause

SUFFIXES: Final = (".parquet",)
PROVENANCE_KEY: Final = b"mimi.provenance"
"""Key of the file's metadata under which what made the codes is kept, a JSON object."""
_GROUP_CODES: Final = 1 << 22
"""Codes of a row group, beyond which the next begins."""
_GROUP_ROWS: Final = 1000


def schema_of(header: ShardHeader) -> Any:
    """Return the Arrow schema of a shard."""
    types = {"int": pa.int64(), "str": pa.string()}
    columns = [
        pa.field(field.name, types[str(field.type).split(" ")[0]], "None" in str(field.type)) for field in fields(RowFacts)
    ]
    code_type = pa.list_(pa.field("item", pa.list_(pa.field("item", pa.type_for_alias(header.dtype), False)), False))
    text = json.dumps(dict(header.provenance), separators=(",", ":"))
    return pa.schema([*columns, pa.field("codes", code_type, False)], {PROVENANCE_KEY: text.encode()})


def write_shard(files: list[Path], rows: Iterable[Row], header: ShardHeader) -> None:
    """Write row groups of a bounded size."""
    (path,) = files
    schema = schema_of(header)
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        group: list[Row] = []
        codes = 0
        for row in rows:
            group.append(row)
            codes += row.codes.size
            if codes >= _GROUP_CODES or len(group) >= _GROUP_ROWS:
                writer.write_table(_table(group, schema))
                group, codes = [], 0
        if group:
            writer.write_table(_table(group, schema))


def read_shard(files: list[Path]) -> Iterator[Row]:
    """Yield the rows, a row group in memory at a time; the codes are views of it."""
    (path,) = files
    try:
        with pq.ParquetFile(path) as file:
            for number in range(file.num_row_groups):
                yield from _rows(file.read_row_group(number), str(path))
    except (OSError, pa.ArrowException) as cause:
        raise CodesFileError(str(path), str(cause).splitlines()[0], "a shard in Parquet") from cause


def _table(rows: list[Row], schema: Any) -> Any:
    facts = [asdict(row.facts) for row in rows]
    columns = [pa.array([values[field.name] for values in facts], field.type) for field in schema if field.name != "codes"]
    values = np.concatenate([np.ascontiguousarray(row.codes).reshape(-1) for row in rows])
    frames = np.concatenate([np.full(len(row.codes), row.facts.frames, np.int32) for row in rows])
    levels = np.array([len(row.codes) for row in rows], np.int32)
    code_type = schema.field("codes").type
    inner = pa.ListArray.from_arrays(_offsets(frames), pa.array(values), type=code_type.value_type)
    return pa.table([*columns, pa.ListArray.from_arrays(_offsets(levels), inner, type=code_type)], schema=schema)


def _offsets(lengths: Any) -> Any:
    return pa.array(np.concatenate([np.zeros(1, np.int32), np.cumsum(lengths, dtype=np.int32)]))


def _rows(table: Any, subject: str) -> Iterator[Row]:
    names = [field.name for field in fields(RowFacts)]
    if missing := {*names, "codes"} - set(table.column_names):
        raise CodesFileError(subject, f"no column {min(missing)}", "a shard of codes")
    facts = table.select(names).to_pylist()
    codes = table.column("codes").combine_chunks()
    for at, values in enumerate(facts):
        levels = codes[at].values
        frames = values["frames"]
        array = levels.flatten().to_numpy(zero_copy_only=False)
        if not isinstance(frames, int) or array.size != len(levels) * frames:
            raise CodesFileError(
                f"{subject}: row {values['index']}", f"{array.size} codes", f"{len(levels)} levels of {frames}"
            )
        yield checked_row(facts_from(values, subject), array.reshape(len(levels), frames), subject)
