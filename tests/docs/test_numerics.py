"""docs/numerics.md against the code it describes; that the sums are as written is for tests/ext/kernels."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from codec_core._ext import Kernels

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "numerics.md").read_text()
PROSE = " ".join(PAGE.split())  # wherever its lines break
ENGINE = ROOT / "ext"


def number_after(phrase: str) -> str:
    match = re.search(re.escape(phrase) + r"\s*([\d.e^-]+)", PROSE)
    assert match is not None, phrase
    return match[1].rstrip(".")


def test_the_names_are_those_that_are_taken():
    listed = re.findall(r"^\| `([\w-]+)` \|", PAGE, re.M)
    assert re.findall(r'if \(name == "([\w-]+)"\)', (ENGINE / "model" / "numerics.cc").read_text()) == listed


def test_the_length_of_a_chain():
    assert f"chain_elements = {number_after('cut into blocks of')};" in (ENGINE / "layers" / "numerics_policy.h").read_text()


def test_the_longest_stream():
    state = (ENGINE / "state" / "stream_state.h").read_text()
    assert f"max_position_steps = std::uint64_t{{1}} << {number_after('exact in f32 up to 2^')}" in state


def test_the_epsilon_of_layer_norm():
    epsilon = float(number_after("sqrt(variance +"))
    values = np.float32([1e-3, -1e-3] * 8)
    for isa in Kernels.usable_isas():
        found = Kernels(isa).layer_norm(values, np.ones_like(values), np.zeros_like(values))
        assert np.allclose(found, values / np.sqrt(1e-6 + epsilon), rtol=1e-6)


def test_the_near_tie_of_the_page_is_told_apart():
    """The two distances are a few steps of f32 apart, less than a sum of 256 squares loses; the scores are hundreds apart."""
    distances = re.search(r"distances are ([\d.]+) and ([\d.]+)", PROSE)
    scores = re.search(r"scores, (-[\d.]+) and (-[\d.]+)", PROSE)
    assert distances is not None
    assert scores is not None
    apart = [np.diff(np.float64(pair.groups()))[0] / np.spacing(np.float32(pair[1])) for pair in (distances, scores)]
    assert 0 < apart[0] < 8
    assert abs(apart[1]) > 500
