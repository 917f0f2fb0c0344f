"""docs/numerics.md against the code and against an independent computation of its sums."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from codec_core._ext import Kernels

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "numerics.md").read_text()


def number_after(text: str, phrase: str) -> str:
    match = re.search(re.escape(phrase) + r"\s*([\d.e^-]+)", text)
    assert match is not None, phrase
    return match[1].rstrip(".")


def fma(x: np.float32, y: np.float32, z: np.float32) -> np.float32:
    """One rounding: the product of two f32 is exact in double, and 80 bits hold the sum where this is used."""
    return np.float32(np.longdouble(x) * np.longdouble(y) + np.longdouble(z))


def chain(x: np.ndarray, y: np.ndarray) -> np.float32:
    total = np.float32(0)
    for a, b in zip(x, y, strict=True):
        total = fma(a, b, total)
    return total


def test_the_longest_stream():
    state = (ROOT / "ext" / "state" / "stream_state.h").read_text()
    assert f"max_position_steps = std::uint64_t{{1}} << {number_after(PAGE, 'exact in f32 up to 2^')}" in state


def test_layer_norm_has_the_epsilon_that_is_written_down():
    epsilon = float(number_after(PAGE, "sqrt(variance +"))
    values = np.float32([1e-3, -1e-3] * 8)
    for isa in Kernels.usable_isas():
        found = Kernels(isa).layer_norm(values, np.ones_like(values), np.zeros_like(values))
        assert np.allclose(found, values / np.sqrt(1e-6 + epsilon), rtol=1e-6)


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="longdouble is no wider than double here")
@pytest.mark.parametrize("length", [1, 7, 255, 256, 257, 600])
def test_a_matrix_product_is_the_sum_that_is_written_down(rng: np.random.Generator, length: int):
    weights = rng.standard_normal((3, length)).astype(np.float32)
    column = rng.standard_normal(length).astype(np.float32)
    block = int(number_after(PAGE, "cut into blocks of"))
    for isa in Kernels.usable_isas():
        found = Kernels(isa).matmul(weights, column[np.newaxis])[0]
        for row, value in zip(weights, found, strict=True):
            total = chain(row[:block], column[:block])
            for start in range(block, length, block):
                total = np.float32(total + chain(row[start : start + block], column[start : start + block]))
            assert value == total


def test_the_near_tie_of_the_page_is_told_apart():
    """Distances 77.22198 and 77.22202: beyond f32 sums of squares, within reach of the scores."""
    distances = [np.float32(text) for text in re.search(r"distances are ([\d.]+) and ([\d.]+)", PAGE).groups()]
    scores = [np.float32(text) for text in re.search(r"scores, (-[\d.]+) and (-[\d.]+)", PAGE).groups()]
    steps_between = abs(float(distances[1] - distances[0])) / float(np.spacing(distances[0]))
    assert steps_between < 8
    assert abs(float(scores[1] - scores[0])) / float(np.spacing(np.abs(scores[0]))) > 500
