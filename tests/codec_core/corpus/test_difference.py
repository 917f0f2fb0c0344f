"""Two corpora, row by row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from codec_core.corpus.difference import compare_corpora
from codec_core.corpus.tally import Counts
from codec_core.data import Corpus

MakeCorpus = Callable[..., tuple[Corpus, Counts]]


def differences(first: Corpus, second: Corpus) -> list[str]:
    return [f"{Path(found.subject).name}: {found.detail}" for found in compare_corpora(first, second)]


def test_formats_and_shards_are_no_difference(few_files: Path, make_corpus: MakeCorpus, tmp_path: Path):
    first, _ = make_corpus([few_files], tmp_path / "a", form="npy", shard_size=2)
    second, _ = make_corpus([few_files], tmp_path / "b", form="parquet", shard_size=5)
    assert differences(first, second) == []


def test_rows_facts_codes_and_errors(few_files: Path, make_corpus: MakeCorpus, tmp_path: Path):
    first, _ = make_corpus([few_files], tmp_path / "a")
    (few_files / "0.wav").write_bytes((few_files / "6.wav").read_bytes())
    (few_files / "5.wav").write_bytes(b"text")
    (few_files / "3-bad.wav").write_bytes((few_files / "6.wav").read_bytes())
    second, _ = make_corpus([few_files], tmp_path / "b")
    found = differences(first, second)
    assert [line.partition(":")[0] for line in found if "only in" in line] == ["3-bad.wav", "5.wav"]
    assert "3-bad.wav: only in B" in found
    assert "5.wav: only in A" in found
    assert any(line.startswith("0.wav: source_sha256: ") for line in found)
    assert any(line.startswith("0.wav: codes, as a whole: expected shape [8, 5], found shape [8, 2]") for line in found)
    assert [line.partition(": ")[0] for line in found if ": error: " in line] == ["3-bad.wav", "5.wav"]


def test_what_made_them(few_files: Path, make_corpus: MakeCorpus, tmp_path: Path):
    first, _ = make_corpus([few_files / "1.wav"], tmp_path / "a", levels=8)
    second, _ = make_corpus([few_files / "1.wav"], tmp_path / "b", levels=4)
    assert differences(first, second)[:1] == ["corpus: levels: 8, 4"]
