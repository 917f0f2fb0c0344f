"""A corpus as a page: code usage, perplexity, lengths and errors, in one HTML file that needs nothing else."""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from codec_core.atomic_file import atomic_output
from codec_core.corpus.reader import Corpus
from codec_core.corpus.statistics import CorpusStatistics, gather
from codec_core.errors import CodesFileError

_BINS: Final = 64
_WIDTH: Final = 640
_HEIGHT: Final = 120
_STYLE: Final = (
    "body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:44rem;padding:0 1rem;color:#1c2430;background:#fff}"
    "h1{font-size:1.5rem}h2{font-size:1.1rem;margin:2rem 0 .4rem}table{border-collapse:collapse}"
    "td,th{padding:.15rem .9rem .15rem 0;text-align:left;vertical-align:top}td.n,th.n{text-align:right}"
    "svg{display:block;width:100%;height:auto;background:#f3f5f8;border-radius:4px}rect{fill:#2f6fb3}"
    "text{font-size:11px;fill:#4a5568}code{font-size:.85em;overflow-wrap:anywhere}figure{margin:.6rem 0}"
    "figcaption{color:#4a5568;font-size:.85rem}"
    "@media(prefers-color-scheme:dark){body{color:#dfe5ee;background:#14181f}svg{background:#1e252f}text,figcaption{fill:#a8b3c2;"
    "color:#a8b3c2}rect{fill:#6aa5e0}}"
)


def write_report(
    corpus: Corpus, path: str | os.PathLike[str], progress: Callable[[int, int], Any] = lambda _done, _all: None
) -> CorpusStatistics:
    """Read a whole corpus and write its report; an existing file is replaced.

    Raises:
        CodesFileError: a shard is damaged, or the file cannot be written.

    """
    statistics = gather(corpus, progress)
    with atomic_output(path, replace=True, error=CodesFileError) as temporary:
        temporary.write_text(report_page(corpus, statistics), encoding="utf-8")
    return statistics


def report_page(corpus: Corpus, statistics: CorpusStatistics) -> str:
    """Return the page as HTML."""
    hours = statistics.samples / int(corpus.description["sample_rate_hz"]) / 3600
    facts = {
        "rows": f"{statistics.rows:,}",
        "audio": f"{hours:,.3f} hours, {statistics.frames:,} frames",
        "errors": f"{statistics.errors.total():,} of {corpus.description['inputs']:,} inputs",
        "complete": "yes" if corpus.is_complete else "no: only the shards committed so far",
        "levels": str(corpus.levels),
        **{name.replace("_", " "): text for name, text in corpus.provenance.items()},
    }
    parts = [
        f"<h1>Corpus {html.escape(corpus.folder.path.name)}</h1>",
        _table(facts.items()),
        "<h2>Perplexity per level</h2>",
        _perplexity_part(statistics),
        "<h2>Length of rows</h2>",
        _length_part(statistics),
        "<h2>Sample rate of sources</h2>",
        _counter_part(statistics.rates_hz, "Hz"),
        "<h2>Errors</h2>",
        _counter_part(statistics.errors, "") if statistics.errors else "<p>None.</p>",
        "<h2>Code usage per level</h2>",
        *(_usage_part(level, statistics) for level in range(corpus.levels)),
    ]
    title = html.escape(f"Corpus {corpus.folder.path.name}")
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>'
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}<style>{_STYLE}</style></head><body>\n'
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _perplexity_part(statistics: CorpusStatistics) -> str:
    entries = statistics.usage.shape[1]
    perplexities, used = statistics.perplexities(), statistics.used_entries()
    rows = "".join(
        f'<tr><td class="n">{level}</td><td class="n">{value:.1f}</td><td class="n">{count}</td></tr>'
        for level, (value, count) in enumerate(zip(perplexities, used, strict=True))
    )
    head = '<tr><th class="n">level</th><th class="n">perplexity</th><th class="n">entries used</th></tr>'
    caption = f"How many of {entries} equally likely codes would be as uncertain; level 0 is the semantic one."
    return _bars(perplexities, caption, [str(level) for level in range(len(perplexities))]) + f"<table>{head}{rows}</table>"


def _length_part(statistics: CorpusStatistics) -> str:
    if not statistics.lengths_s:
        return "<p>No rows.</p>"
    counts, edges = np.histogram(statistics.lengths_s, bins=min(_BINS, 40))
    median, longest = float(np.median(statistics.lengths_s)), max(statistics.lengths_s)
    labels = [f"{edge:.1f} s" if at % 8 == 0 else "" for at, edge in enumerate(edges[:-1])]
    return _bars(counts.tolist(), f"Rows by length; median {median:.2f} s, longest {longest:.2f} s.", labels)


def _usage_part(level: int, statistics: CorpusStatistics) -> str:
    """Show usage sorted from the most used entry on, entries gathered in bins: flat is even use, a cliff is a dead end."""
    counts = np.sort(statistics.usage[level])[::-1]
    bins = [int(part.sum()) for part in np.array_split(counts, min(_BINS, len(counts)))]
    dead = int((counts == 0).sum())
    share = counts[0] / max(1, counts.sum())
    caption = f"Level {level}: entries from the most to the least used; {dead} never, the most used {share:.1%} of the time."
    return _bars(bins, caption)


def _counter_part(counter: Any, unit: str) -> str:
    return _table((f"{name} {unit}".strip(), f"{count:,}") for name, count in sorted(counter.items()))


def _table(rows: Any) -> str:
    cells = (
        f"<tr><th>{html.escape(str(name))}</th><td><code>{html.escape(str(value))}</code></td></tr>" for name, value in rows
    )
    return f"<table>{''.join(cells)}</table>"


def _bars(values: Sequence[float], caption: str, labels: Sequence[str] = ()) -> str:
    """Return a bar chart with its caption; each bar tells its value when pointed at."""
    top, step = max(*values, 1e-9) if len(values) > 1 else max(values[0], 1e-9), _WIDTH / len(values)
    shapes = []
    for at, value in enumerate(values):
        height = value / top * (_HEIGHT - 20)
        title = f"<title>{value:,.6g}</title>"
        y = _HEIGHT - 16 - height
        shapes.append(f'<rect x="{at * step:.2f}" y="{y:.2f}" width="{step * 0.85:.2f}" height="{height:.2f}">{title}</rect>')
    for at, label in enumerate(labels):
        shapes.append(f'<text x="{at * step:.2f}" y="{_HEIGHT - 3}">{html.escape(label)}</text>')
    picture = f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{html.escape(caption)}">{"".join(shapes)}</svg>'
    return f"<figure>{picture}<figcaption>{html.escape(caption)}</figcaption></figure>"
