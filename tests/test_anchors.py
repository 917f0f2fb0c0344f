"""What users of such systems hit, by the rows of ANCHORS.md: each that a service can cure is named by the test of its cure."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROWS = {
    "A1": "codes depend on the batch",
    "A4": "streaming differs from the whole clip",
    "A5": "decoding frame by frame without state is noise",
    "A6": "more levels than were wanted, by default",
    "A7": "a code outside the codebook crashes",
    "A8": "a code outside the codebook kills everybody's work",
    "A9": "codes depend on the shape of a batch",
    "A11": "state of one stream seen by another",
    "A13": "state left over in a place that is used again",
    "B1": "the tail of every chunk is dropped",
    "B2": "a gap at every chunk",
    "B3": "seams, the decoder being called without state",
    "B4": "seams",
    "B5": "clicks, decoding frame by frame",
    "B6": "clicks of a player of chunks",
    "B7": "a resampler cleared after a pause",
    "B8": "a resampler that returns no samples at first",
    "B9": "hardware that has a rate of its own",
    "B11": "a browser that refuses another rate than the microphone's",
    "C1": "an idle server busy",
    "C2": "latency far from the claim",
    "C3": "slower than real time",
    "D1": "memory for compression",
    "D2": "a session ends after minutes",
    "D3": "positions run out",
    "D4": "buffers grow",
    "D5": "a slow reader fills memory",
    "D6": "memory grows with the length of the input",
    "E1": "no free place until restarted",
    "E2": "no reason and no documentation",
    "E3": "one message for every cause",
    "E4": "no word about which header was expected",
    "E9": "a proxy ends what is silent for a minute",
    "F1": "disconnects at the wrong moment",
    "F2": "versions of the wire",
    "F3": "no microphone without HTTPS",
    "F4": "text where binary would do",
    "F5": "settings for the server instead of the session",
    "G1": "1006 at shutdown",
    "G2": "ping settings ignored",
    "G3": "healthy peers given up under load",
    "G4": "keepalive under load",
    "G5": "phantoms that hold places",
    "G6": "work for who has gone",
    "G7": "rogue clients",
    "G8": "a shutdown that does not end",
    "G9": "limits that nobody set",
    "G10": "a queue that ends, and then a reason",
}
"""Rows of loaders, models, training and packaging are not the service's."""


def _named() -> set[str]:
    """Collect the rows that docstrings of tests name, as ``ANCHORS A1, B2: ...``."""
    named: set[str] = set()
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module) and (text := ast.get_docstring(node)):
                for rows in re.findall(r"ANCHORS ([^:]+):", text):
                    named |= set(rows.split(", "))
    return named


@pytest.fixture(scope="module")
def named() -> set[str]:
    return _named()


@pytest.mark.parametrize("row", ROWS)
def test_a_test_names_it(named, row):
    assert row in named, ROWS[row]


def test_nobody_names_a_row_that_is_not_there(named):
    assert {row for row in named if re.fullmatch(r"[A-G]\d+", row)} <= set(ROWS)
