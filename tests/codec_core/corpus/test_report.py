"""The page that describes a corpus, and the counts it shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from codec_core.corpus.report import report_page, write_report
from codec_core.corpus.statistics import gather
from codec_core.corpus.tally import Counts
from codec_core.data import Corpus

MakeCorpus = Callable[..., tuple[Corpus, Counts]]


@pytest.fixture
def corpus(few_files: Path, make_corpus: MakeCorpus, tmp_path: Path) -> Corpus:
    return make_corpus([few_files], tmp_path / "a <corpus>")[0]


def test_counts_are_those_of_the_codes(corpus: Corpus):
    statistics = gather(corpus)
    codes = np.concatenate([row.codes for row in corpus.rows()], axis=1)
    assert (statistics.rows, statistics.frames) == (7, codes.shape[1])
    assert statistics.errors == {"non_finite_input": 1}
    for level in range(8):
        entries, counts = np.unique(codes[level], return_counts=True)
        share = counts / counts.sum()
        assert statistics.used_entries()[level] == len(entries)
        assert np.isclose(statistics.perplexities()[level], np.prod(share**-share))
        assert np.array_equal(statistics.usage[level][entries], counts)


def test_the_page_stands_alone_and_is_well_formed(corpus: Corpus, tmp_path: Path):
    statistics = write_report(corpus, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert not re.search(r"(src|href)=|@import|url\(|<script", page)
    opened: list[str] = []

    class Checker(HTMLParser):
        def handle_starttag(self, tag: str, _attrs: object) -> None:
            if tag != "meta":
                opened.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert opened.pop() == tag

    Checker().feed(page)
    assert not opened
    assert page.count("<svg") == 2 + corpus.levels
    assert "a &lt;corpus&gt;" in page
    for value in statistics.perplexities():
        assert f"{value:.1f}</td>" in page


def test_a_corpus_of_errors_alone(few_files: Path, make_corpus: MakeCorpus, tmp_path: Path):
    corpus, counts = make_corpus([few_files / "3-bad.wav"], tmp_path / "a")
    assert (counts.rows, counts.errors) == (0, 1)
    page = report_page(corpus, gather(corpus))
    assert "No rows." in page
    assert "non_finite_input" in page
