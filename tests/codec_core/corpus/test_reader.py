"""A corpus as it is read again; :mod:`codec_core.data` is the way in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import codec_core.data
from codec_core.corpus.tally import Counts
from codec_core.data import Corpus
from codec_core.errors import CodesFileError

MakeCorpus = Callable[..., tuple[Corpus, Counts]]


@pytest.fixture(params=["npy", "parquet", "webdataset", "safetensors"])
def corpus(request: pytest.FixtureRequest, few_files: Path, make_corpus: MakeCorpus, tmp_path: Path) -> Corpus:
    make_corpus([few_files], tmp_path / "corpus", form=request.param, shard_size=2)
    return codec_core.data.open(tmp_path / "corpus")


def test_codes_and_metadata_in_order_any_number_of_times(corpus: Corpus, tiny_model):
    first, second = list(corpus), list(corpus)
    assert [metadata["index"] for _, metadata in first] == [0, 1, 2, 4, 5, 6, 7]
    assert len(corpus) == len(first) == len(second)
    for (codes, metadata), (again, same) in zip(first, second, strict=True):
        assert codes.dtype == np.int16
        assert codes.shape == (8, metadata["frames"])
        assert np.array_equal(codes, again)
        assert metadata == same
    assert corpus.provenance["model_sha256"] == tiny_model.info.sha256
    assert corpus.levels == 8


def test_parts_share_the_shards_out(corpus: Corpus):
    parts = [[metadata["index"] for _, metadata in corpus.part(number, 3)] for number in range(3)]
    assert parts == [[0, 1, 6, 7], [2], [4, 5]]
    nested = [metadata["index"] for at in range(2) for _, metadata in corpus.part(0, 2).part(at, 2)]
    assert sorted(nested) == [metadata["index"] for _, metadata in corpus.part(0, 2)]
    with pytest.raises(CodesFileError, match="part"):
        corpus.part(3, 3)


def test_a_row_by_its_index(corpus: Corpus):
    assert [corpus.row(index).facts.index for index in (7, 0, 4)] == [7, 0, 4]
    with pytest.raises(CodesFileError, match="an error \\(non_finite_input"):
        corpus.row(3)
    with pytest.raises(CodesFileError, match=r"0 \.\. 7"):
        corpus.row(8)


def test_errors(corpus: Corpus):
    assert [(error.index, error.code) for error in corpus.errors()] == [(3, "non_finite_input")]


def test_an_unfinished_corpus_shows_what_is_committed(corpus: Corpus):
    (corpus.folder.path / "errors.jsonl").unlink()
    (corpus.folder.path / "ledger" / "shard-000001.json").unlink()
    again = codec_core.data.open(corpus.folder.path)
    assert not again.is_complete
    assert [metadata["index"] for _, metadata in again] == [0, 1, 4, 5, 6, 7]


def test_what_is_missing_from_a_complete_one_is_told(corpus: Corpus):
    ledger = corpus.folder.path / "ledger" / "shard-000001.json"
    text = ledger.read_text()
    ledger.unlink()
    with pytest.raises(CodesFileError, match="no entry for shard 1"):
        list(codec_core.data.open(corpus.folder.path))
    ledger.write_text(text.replace('"rows":1', '"rows":2'))
    with pytest.raises(CodesFileError, match="1 rows, expected 2"):
        list(codec_core.data.open(corpus.folder.path))
    for path in corpus.folder.path.glob("shard-000001.*"):
        path.unlink()
    with pytest.raises(CodesFileError):
        list(codec_core.data.open(corpus.folder.path))


def test_no_corpus(tmp_path: Path):
    with pytest.raises(CodesFileError, match="made by mimi tokenize"):
        codec_core.data.open(tmp_path)
