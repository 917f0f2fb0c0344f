"""Outcomes in any order become shards in order; what cannot be written is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from codec_core.corpus.assembly import Assembly
from codec_core.corpus.feed import SourceFacts
from codec_core.corpus.formats import ShardHeader, ShardOutput, room_of
from codec_core.corpus.inputs import Source
from codec_core.corpus.lanes import Outcome
from codec_core.corpus.ledger import CorpusFolder, LedgerEntry
from codec_core.corpus.settings import Shard
from codec_core.errors import AudioFileError, CodesFileError

OUTPUT = ShardOutput("npy", ShardHeader(2, "int16", {}))


def outcome(index: int) -> Outcome:
    source = Source(f"{index}.wav")
    if index % 5 == 3:
        return Outcome(index, source, error=AudioFileError(source.path, "text"))
    codes = np.full((index + 1, 2), index, "<i2")
    return Outcome(index, source, codes.tobytes(), SourceFacts("00", 24000, 1, 1920 * (index + 1), 1920 * (index + 1)))


def test_order_of_delivery_does_not_show(tmp_path: Path, rng: np.random.Generator):
    shards = [Shard(number, number * 4, tuple(Source(f"{at}.wav") for at in range(4))) for number in range(3)]
    results = []
    for name, order in (("a", np.arange(12)), ("b", rng.permutation(12))):
        folder, entries = CorpusFolder(tmp_path / name), []
        (folder.path / "ledger").mkdir(parents=True)
        with Assembly(folder, OUTPUT, entries.append) as assembly:
            for shard in shards:
                assembly.expect(shard)
            for index in order:
                assembly.deliver(outcome(int(index)))
        results.append({path.name: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()})
        assert {entry.number: (entry.rows, len(entry.errors)) for entry in entries} == {0: (3, 1), 1: (4, 0), 2: (3, 1)}
    assert results[0] == results[1]
    rows = list(room_of("npy").read_shard([folder.path / f"shard-000002{suffix}" for suffix in room_of("npy").SUFFIXES]))
    assert [(row.facts.index, row.codes.shape) for row in rows] == [(9, (2, 10)), (10, (2, 11)), (11, (2, 12))]


def test_an_open_shard_leaves_nothing(tmp_path: Path):
    folder, entries = CorpusFolder(tmp_path / "a"), list[LedgerEntry]()
    (folder.path / "ledger").mkdir(parents=True)
    with Assembly(folder, OUTPUT, entries.append) as assembly:
        assembly.expect(Shard(0, 0, (Source("0.wav"), Source("1.wav"))))
        assembly.deliver(outcome(0))
    assert not entries
    assert [path.name for path in folder.path.rglob("*")] == ["ledger"]


def test_a_shard_that_cannot_be_written_is_told(tmp_path: Path):
    folder = CorpusFolder(tmp_path / "a")
    for name in ("ledger", "shard-000000.npy"):
        (folder.path / name).mkdir(parents=True)
    assembly = Assembly(folder, OUTPUT, lambda _entry: None)
    assembly.expect(Shard(0, 0, (Source("0.wav"),)))
    assembly.deliver(outcome(0))
    with pytest.raises(CodesFileError, match="shard-000000"):
        assembly.__exit__(None, None, None)
    assert not list((folder.path / "ledger").iterdir())
