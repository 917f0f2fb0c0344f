"""A corpus's folder: one run at a time, one corpus to a folder, and a shard is there when its entry is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codec_core.corpus.ledger import CorpusFolder, LedgerEntry, file_facts
from codec_core.corpus.rows import ErrorEntry
from codec_core.errors import CodesFileError, OutputExistsError, SettingError

DESCRIPTION = {"schema": 1, "levels": 8, "inputs": 5, "inputs_sha256": "ab", "shards": 1}
ERROR = ErrorEntry(3, "x.wav", None, None, "audio_file", "x.wav: found text")


@pytest.fixture
def folder(tmp_path: Path) -> CorpusFolder:
    return CorpusFolder(tmp_path / "corpus")


def commit(folder: CorpusFolder, data: bytes = b"rows") -> LedgerEntry:
    folder.describe(DESCRIPTION)
    (folder.path / "shard-000000.npy").write_bytes(data)
    files = (file_facts(folder.path / "shard-000000.npy", "shard-000000.npy"),)
    entry = LedgerEntry(0, 4, 40, 40 * 1920, files, (ERROR,))
    folder.commit(entry)
    return entry


def test_one_run_at_a_time(folder: CorpusFolder):
    with folder.held(), pytest.raises(OutputExistsError, match="another run"), CorpusFolder(folder.path).held():
        pytest.fail("two runs hold one folder")
    with folder.held():
        pass


def test_what_a_killed_run_left_is_removed(folder: CorpusFolder):
    with folder.held():
        (folder.path / ".corpus.json.0123.partial").write_bytes(b"x")
        folder.describe(DESCRIPTION)
        left = [folder.path / ".shard-000001.npy.0123.partial", folder.path / "ledger" / ".x.partial"]
        for path in left:
            path.write_bytes(b"x")
        folder.describe(DESCRIPTION)
    assert sorted(path.name for path in folder.path.rglob("*")) == ["corpus.json", "ledger"]


def test_the_same_corpus_continues_and_another_is_refused(folder: CorpusFolder):
    with folder.held():
        folder.describe(DESCRIPTION)
        folder.describe(DESCRIPTION)
        with pytest.raises(SettingError, match=r"levels: found 8, expected 16; another corpus wants another folder"):
            folder.describe(DESCRIPTION | {"levels": 16})
        with pytest.raises(SettingError, match="the same list of inputs"):
            folder.describe(DESCRIPTION | {"inputs_sha256": "cd"})
    assert folder.description() == DESCRIPTION


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path):
    (tmp_path / "thesis.tex").write_text("x")
    (tmp_path / ".thesis.tex.partial").write_text("x")
    folder = CorpusFolder(tmp_path)
    with folder.held(), pytest.raises(OutputExistsError, match="no corpus"):
        folder.describe(DESCRIPTION)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".thesis.tex.partial", "thesis.tex"]


def test_a_folder_that_cannot_be(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(CodesFileError), CorpusFolder(tmp_path / "file").held():
        pytest.fail("a file is no folder")


def test_no_corpus(tmp_path: Path):
    with pytest.raises(CodesFileError, match=r"no corpus\.json"):
        CorpusFolder(tmp_path).description()
    for text in ("nonsense", "[]", '{"schema": 2}'):
        (tmp_path / "corpus.json").write_text(text)
        with pytest.raises(CodesFileError):
            CorpusFolder(tmp_path).description()


def test_a_shard_is_there_when_its_entry_and_files_are(folder: CorpusFolder):
    with folder.held():
        assert folder.entry(0) is None
        entry = commit(folder)
        assert folder.entry(0) == entry
        (folder.path / "shard-000000.npy").write_bytes(b"row")
        assert folder.entry(0) is None
        (folder.path / "shard-000000.npy").unlink()
        assert folder.entry(0) is None


@pytest.mark.parametrize(
    "change", [{"rows": "x"}, {"files": None}, {"errors": [1]}, {"files": [{"name": "../x", "size_bytes": 1, "sha256": ""}]}]
)
def test_a_damaged_entry_is_refused(folder: CorpusFolder, change: dict):
    with folder.held():
        commit(folder)
        path = folder.path / "ledger" / "shard-000000.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
        with pytest.raises(CodesFileError, match="shard-000000"):
            folder.entry(0)


def test_the_error_table_ends_a_run(folder: CorpusFolder):
    with folder.held():
        commit(folder)
        folder.finish(1)
        lines = (folder.path / "errors.jsonl").read_text().splitlines()
        assert [json.loads(line)["message"] for line in lines] == [ERROR.message]
        with pytest.raises(CodesFileError, match="shard 1"):
            folder.finish(2)
