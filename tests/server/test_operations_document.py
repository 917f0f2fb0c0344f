"""``docs/operations.md`` and the code say the same."""

from __future__ import annotations

import re
from pathlib import Path

from server.metrics_table import METRICS
from server.settings import Settings
from server.status_map import STATUS_MAP

TEXT = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")


def table(first_column: str) -> list[list[str]]:
    """Return the rows of a table, found by the heading of its first column."""
    (block,) = re.findall(rf"^\| {re.escape(first_column)} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", TEXT, re.MULTILINE)
    return [[cell.strip() for cell in row.strip("|").split(" |")] for row in block.splitlines()]


def plain(cell: str) -> str:
    return cell.strip("`")


def test_settings():
    rows = {plain(row[0]): (plain(row[1]), row[2]) for row in table("setting")}
    assert list(rows) == list(Settings.model_fields)
    for name, field in Settings.model_fields.items():
        default = "" if field.default is None else str(field.default)
        assert rows[name] == (default.lower() if isinstance(field.default, bool) else default, field.description)


def test_metrics():
    rows = {plain(row[0]): (row[1], tuple(re.findall(r"`(\w+)`", row[2])), row[3]) for row in table("metric")}
    assert rows == {name: (row.kind, row.labels, row.help) for name, row in METRICS.items()}


def test_refusals():
    for row in table("refused as"):
        assert plain(row[0]) in STATUS_MAP
        for name in re.findall(r"`(\w+)`", row[1] + row[2]):
            assert name in Settings.model_fields or name in STATUS_MAP, name


def test_every_name_is_one():
    known = {*Settings.model_fields, *METRICS, *STATUS_MAP}
    for name in re.findall(r"`(max_\w+|mimi_\w+(?<!\*)|\w+_ms|MIMI_\w+)`", TEXT):
        bare = name.removeprefix("MIMI_").lower() if name.startswith("MIMI_") else name
        assert bare in known | {"duration_ms", "retry_after_ms"}, name


def test_errors():
    rows = {plain(row[0]): row[1] for row in table("error")}
    assert rows == {code: answer.reason for code, answer in STATUS_MAP.items()}
    assert all(row[2] for row in table("error"))
