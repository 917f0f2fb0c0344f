"""What a corpus is like: how often each code is used, how long its rows are, what failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from codec_core.corpus.reader import Corpus


@dataclass
class CorpusStatistics:
    """Counts over all rows of a corpus."""

    usage: npt.NDArray[np.int64]
    """How often each code was chosen, [levels, entries]."""
    rows: int = 0
    frames: int = 0
    samples: int = 0
    lengths_s: list[float] = field(default_factory=list)
    """Length of each row."""
    errors: Counter[str] = field(default_factory=Counter)
    """Inputs that failed, by error code."""
    rates_hz: Counter[int] = field(default_factory=Counter)
    """Rows by the rate of their source."""

    def perplexities(self) -> list[float]:
        """Return of each level how many equally likely codes would be as uncertain; 0 where there are no frames."""
        found = []
        for counts in self.usage:
            share = counts[counts > 0] / max(1, counts.sum())
            found.append(float(np.exp(-(share * np.log(share)).sum())) if len(share) else 0.0)
        return found

    def used_entries(self) -> list[int]:
        """Return of each level how many entries were chosen at least once."""
        return [int((counts > 0).sum()) for counts in self.usage]


def gather(corpus: Corpus, progress: Callable[[int, int], Any] = lambda _done, _all: None) -> CorpusStatistics:
    """Read a whole corpus once and count.

    Args:
        corpus: what to read.
        progress: told rows done and rows in all.

    Raises:
        CodesFileError: a shard is damaged.

    """
    entries, rate_hz = int(corpus.description["codebook_entries"]), int(corpus.description["sample_rate_hz"])
    statistics = CorpusStatistics(np.zeros((corpus.levels, entries), np.int64))
    total = len(corpus)
    for row in corpus.rows():
        for level, codes in enumerate(row.codes):
            statistics.usage[level] += np.bincount(codes, minlength=entries)[:entries]
        statistics.rows += 1
        statistics.frames += row.facts.frames
        statistics.samples += row.facts.samples
        statistics.lengths_s.append(row.facts.samples / rate_hz)
        statistics.rates_hz[row.facts.source_rate_hz] += 1
        progress(statistics.rows, total)
    statistics.errors.update(error.code for error in corpus.errors())
    return statistics
