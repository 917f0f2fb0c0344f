"""docs/security.md: its targets, incidents and tests are those that there are."""

from __future__ import annotations

import re
from pathlib import Path

from tests.ext.weights.test_past_incidents import INCIDENTS, SAVED_STATE
from tests.fuzz.fuzz_targets import TARGETS

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "security.md").read_text()


def rows(heading: str) -> list[list[str]]:
    section = DOCUMENT.split(f"## {heading}\n")[1].split("\n## ")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")][2:]


def test_every_fuzz_target_has_its_figures():
    found = {row[0].strip("`"): row for row in rows("Fuzzing")}
    assert set(found) == set(TARGETS)
    measured = {name: row[4] for name, row in found.items() if row[4].endswith("%")}
    assert set(measured) == set(found)
    assert not {name: lines for name, lines in measured.items() if float(lines.removesuffix(" %")) < 85}
    for name, row in found.items():
        assert int(row[2].replace(",", "")) >= 600, name
        assert int(row[3].replace(",", "")) > 100, name


def test_every_incident_has_a_test():
    found = {row[0]: row[2].strip("`") for row in rows("Past incidents")}
    assert set(found) == {*INCIDENTS, SAVED_STATE}
    for incident, file in found.items():
        assert incident in (ROOT / file).read_text()


def test_commands_that_are_named_exist():
    for name in re.findall(r"`?((?:tests|deploy)/[\w/]+/?(?:run\w*|lock_versions))\b", DOCUMENT):
        assert (ROOT / name).is_file(), name
