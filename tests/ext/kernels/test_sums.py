"""The kernels whose results are sums: each equals its written definition bit for bit, on every instruction set."""

from __future__ import annotations

import math

import numpy as np
import pytest

from codec_core._ext import Kernels

F32 = np.float32


def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """One rounding of a b + c: the product of two f32 is exact in double, and the sum in extended precision leaves the one
    rounding to f32 unless it falls on a tie of a tie, which the seeds used here do not meet."""
    wide = a.astype(np.longdouble) * b.astype(np.longdouble) + c.astype(np.longdouble)
    return wide.astype(F32)


def chain(weights: np.ndarray, x: np.ndarray) -> np.ndarray:
    """acc = fma(w[..., k], x[k], acc), k ascending, from +0."""
    total = np.zeros(weights.shape[0], F32)
    for k in range(weights.shape[1]):
        total = fma(weights[:, k], np.broadcast_to(x[k], total.shape), total)
    return total


def lanes16(terms: np.ndarray) -> np.float32:
    """The tree of sixteen partial sums."""
    sums = terms.copy()
    for half in (8, 4, 2, 1):
        sums = sums[:half] + sums[half : 2 * half]
    return sums[0]


@pytest.mark.parametrize("reduction", [1, 7, 32, 255, 256, 257, 600])
@pytest.mark.parametrize("outputs", [1, 15, 16, 17, 40])
def test_matmul_is_blocks_of_chains_in_order(kernels: Kernels, rng: np.random.Generator, outputs: int, reduction: int):
    weights = rng.standard_normal((outputs, reduction)).astype(F32)
    columns = rng.standard_normal((2, reduction)).astype(F32)
    found = np.asarray(kernels.matmul(weights, columns))
    for n in range(2):
        blocks = [chain(weights[:, k : k + 256], columns[n, k : k + 256]) for k in range(0, reduction, 256)]
        total = blocks[0]
        for block in blocks[1:]:
            total = total + block
        assert np.array_equal(found[n], total)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 6, 7, 8, 9, 16, 33])
def test_matmul_columns_do_not_depend_on_their_number(kernels: Kernels, rng: np.random.Generator, count: int):
    weights = rng.standard_normal((70, 300)).astype(F32)
    columns = rng.standard_normal((count, 300)).astype(F32)
    together = np.asarray(kernels.matmul(weights, columns))
    scalar = Kernels("scalar")
    for n in range(count):
        assert np.array_equal(together[n], np.asarray(scalar.matmul(weights, columns[n : n + 1]))[0])


@pytest.mark.parametrize("dim", [8, 16, 24, 128, 512])
def test_layer_norm(kernels: Kernels, rng: np.random.Generator, dim: int):
    x, weight, bias = rng.standard_normal((3, dim)).astype(F32)
    found = np.asarray(kernels.layer_norm(x, weight, bias))
    assert np.array_equal(found, np.asarray(Kernels("scalar").layer_norm(x, weight, bias)))
    wide = x.astype(np.float64)
    exact = (wide - wide.mean()) / np.sqrt(wide.var() + 1e-5) * weight + bias
    assert np.abs(found - exact).max() < 2e-6


def test_layer_norm_sums_by_lanes16(kernels: Kernels, rng: np.random.Generator):
    x = rng.standard_normal(16).astype(F32)
    mean = lanes16(x) / F32(16)
    centred = x - mean
    scale = F32(1) / np.sqrt(lanes16(centred * centred) / F32(16) + F32(1e-5))
    found = np.asarray(kernels.layer_norm(x, np.ones(16, F32), np.zeros(16, F32)))
    assert np.array_equal(found, centred * scale)


@pytest.mark.parametrize("head_dim", [8, 16, 20, 64, 128])
@pytest.mark.parametrize(("first_slot", "count"), [(0, 1), (0, 10), (5, 37), (30, 25), (39, 40)])
def test_attention(kernels: Kernels, rng: np.random.Generator, head_dim: int, first_slot: int, count: int):
    slots = 40
    query = rng.standard_normal(head_dim).astype(F32)
    keys, values = rng.standard_normal((2, slots, head_dim)).astype(F32)
    scale = 1 / math.sqrt(head_dim)
    seen = ((first_slot + np.arange(count)) % slots).tolist()
    found = np.asarray(kernels.attention(query, keys, values, seen, scale))
    scalar = np.asarray(Kernels("scalar").attention(query, keys, values, seen, scale))
    assert np.array_equal(found, scalar)
    scores = keys[seen].astype(np.float64) @ query * scale
    weights = np.exp(scores - scores.max())
    exact = weights / weights.sum() @ values[seen]
    assert np.abs(found - exact).max() < 5e-6


def test_attention_never_reads_a_slot_outside_its_window(kernels: Kernels, rng: np.random.Generator):
    query = rng.standard_normal(16).astype(F32)
    keys, values = rng.standard_normal((2, 12, 16)).astype(F32)
    expected = np.asarray(kernels.attention(query, keys, values, [10, 11, 0, 1, 2], 0.25))
    keys[3:10] = np.nan
    values[3:10] = np.nan
    assert np.array_equal(np.asarray(kernels.attention(query, keys, values, [10, 11, 0, 1, 2], 0.25)), expected)


@pytest.mark.parametrize("entries", [1, 8, 16, 40, 256])
@pytest.mark.parametrize("count", [1, 2, 4, 5, 11])
def test_nearest_codeword(kernels: Kernels, rng: np.random.Generator, entries: int, count: int):
    codewords = rng.standard_normal((entries, 24)).astype(F32)
    residuals = rng.standard_normal((count, 24)).astype(F32)
    found = kernels.nearest_codeword(codewords, residuals)
    distances = ((codewords[:, None].astype(np.float64) - residuals) ** 2).sum(axis=2)
    assert found == distances.argmin(axis=0).tolist()


def test_nearest_codeword_takes_the_lowest_index_on_a_tie(kernels: Kernels, rng: np.random.Generator):
    codewords = rng.standard_normal((64, 8)).astype(F32)
    codewords[[5, 21, 60]] = codewords[33]
    assert kernels.nearest_codeword(codewords, codewords[33:34]) == [5]


def test_nearest_codeword_keeps_small_differences_far_from_the_origin(kernels: Kernels):
    """A residual far longer than the codewords: squared distances would round their difference away."""
    codewords = np.zeros((32, 16), F32)
    codewords[:, 0] = np.arange(32) * 1e-4
    residual = np.full((1, 16), 90, F32)
    assert kernels.nearest_codeword(codewords, residual) == [31]
