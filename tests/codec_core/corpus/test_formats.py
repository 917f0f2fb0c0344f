"""Every format gives back the rows it was given, refuses damage, and is read by its usual readers."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from codec_core.corpus import formats
from codec_core.corpus.formats import ShardHeader, checked_row, room_of
from codec_core.corpus.rows import Row, RowFacts
from codec_core.corpus.settings import SHARD_FORMATS
from codec_core.errors import CodesFileError, UnavailableError

MADE_BY = {"model": "a model", "numerics": "kyutai"}


def rows(dtype: str, levels: int = 4) -> list[Row]:
    generator = np.random.default_rng(5)
    made = []
    for at, frames in enumerate((3, 1, 700, 12)):
        facts = RowFacts(
            index=at * 2,
            source=f"ünï/{at}.wav",
            member="m.wav" if at == 1 else None,
            channel=at if at > 1 else None,
            source_sha256=f"{at:064x}",
            source_rate_hz=44100,
            source_channels=2,
            source_samples=frames * 3528 - at,
            samples=frames * 1920 - at,
            frames=frames,
            trim_samples=at,
            fields='{"text":"hello"}' if at == 2 else None,
        )
        made.append(Row(facts, generator.integers(0, np.iinfo(dtype).max + 1, (levels, frames)).astype(dtype)))
    return made


def written(folder: Path, form: str, some: list[Row], dtype: str = "int16") -> list[Path]:
    room = room_of(form)
    files = [folder / f"shard{suffix}" for suffix in room.SUFFIXES]
    room.write_shard(files, iter(some), ShardHeader(4, dtype, MADE_BY))
    return files


@pytest.fixture(params=SHARD_FORMATS)
def form(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.parametrize("dtype", ["int16", "uint16"])
def test_there_and_back(form: str, dtype: str, tmp_path: Path):
    some = rows(dtype)
    back = list(room_of(form).read_shard(written(tmp_path, form, some, dtype)))
    assert [row.facts for row in back] == [row.facts for row in some]
    for one, other in zip(some, back, strict=True):
        assert other.codes.dtype == dtype
        assert np.array_equal(one.codes, other.codes)


def test_a_shard_without_rows(form: str, tmp_path: Path):
    assert list(room_of(form).read_shard(written(tmp_path, form, []))) == []


def test_equal_rows_make_equal_bytes(form: str, tmp_path: Path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    first, second = (written(tmp_path / name, form, rows("int16")) for name in ("a", "b"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_damage_is_refused(form: str, tmp_path: Path, rng: np.random.Generator):
    """Cut anywhere, a shard gives an error of the tree, or rows that are the first of those written."""
    some = rows("int16")
    files = written(tmp_path, form, some)
    whole = files[-1].read_bytes()
    for cut in (0, 1, 50, 127, 130, *(int(at) for at in rng.integers(130, len(whole), 10))):
        files[-1].write_bytes(whole[:cut])
        found = []
        try:
            found += room_of(form).read_shard(files)
        except CodesFileError:
            continue
        assert [row.facts for row in found] == [row.facts for row in some[: len(found)]]


def test_a_file_of_facts_that_lies(tmp_path: Path):
    for form in ("npy", "safetensors"):
        facts_path, _ = files = written(tmp_path, form, rows("int16"))
        whole = facts_path.read_text()
        for text in (whole.replace('"frames":700', '"frames":699'), "[]\n", "nonsense\n", whole.replace("index", "place")):
            facts_path.write_text(text)
            with pytest.raises(CodesFileError):
                list(room_of(form).read_shard(files))
        facts_path.unlink()
        with pytest.raises(CodesFileError):
            list(room_of(form).read_shard(files))


def test_numpy_reads_the_array(tmp_path: Path):
    array = np.load(written(tmp_path, "npy", rows("int16"))[-1])
    assert np.array_equal(array, np.concatenate([row.codes.T for row in rows("int16")]))


def test_safetensors_reads_the_tensors(tmp_path: Path):
    tensors = load_file(written(tmp_path, "safetensors", rows("int16"))[-1])
    assert list(tensors) == ["0", "2", "4", "6"]
    assert np.array_equal(tensors["4"], rows("int16")[2].codes)


def test_a_tar_has_two_members_to_a_row(tmp_path: Path):
    with tarfile.open(written(tmp_path, "webdataset", rows("int16"))[-1]) as tar:
        assert tar.getnames()[:4] == ["000000000.npy", "000000000.json", "000000002.npy", "000000002.json"]
        described = json.load(tar.extractfile("000000004.json"))
    assert described["provenance"] == MADE_BY
    assert described["fields"] == '{"text":"hello"}'


def test_parquet_has_plain_columns(tmp_path: Path):
    pq = pytest.importorskip("pyarrow.parquet")
    table = pq.read_table(written(tmp_path, "parquet", rows("int16"))[-1])
    assert table.column_names == [*RowFacts.__dataclass_fields__, "codes"]
    assert table.column("codes")[2].as_py() == rows("int16")[2].codes.tolist()
    assert json.loads(table.schema.metadata[b"mimi.provenance"]) == MADE_BY


def test_a_parquet_file_of_something_else(tmp_path: Path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"x": [1]}), tmp_path / "x.parquet")
    with pytest.raises(CodesFileError, match="no column"):
        list(room_of("parquet").read_shard([tmp_path / "x.parquet"]))


def test_without_its_package_a_format_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    monkeypatch.delitem(__import__("sys").modules, formats._ROOMS["parquet"], raising=False)
    with pytest.raises(UnavailableError, match=r"mimi-server\[tokenize\]"):
        room_of("parquet")


@pytest.mark.parametrize("codes", [np.zeros(3, np.int16), np.zeros((2, 4), np.int16), np.zeros((2, 3), np.float32)])
def test_codes_that_are_not_of_their_facts(codes: np.ndarray):
    with pytest.raises(CodesFileError):
        checked_row(rows("int16")[0].facts, codes, "x")
