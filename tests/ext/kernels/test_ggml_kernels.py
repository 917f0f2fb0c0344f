"""The kernels of `ggml` numerics against their definition in NumPy, bit for bit, on every instruction set."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from codec_core._ext import Kernels

from ...golden import ggml_arithmetic as ggml  # noqa: TID252 - the tests are no package that has a name

ALL_ISAS = ["scalar", "avx2", "avx512"]
F32 = np.float32
RANDOM_VALUES = 300_000


@pytest.fixture(params=ALL_ISAS)
def kernels(request: pytest.FixtureRequest, kernels_of: Callable[..., Kernels]) -> Kernels:
    return kernels_of(request.param, "ggml")


@pytest.fixture(autouse=True)
def _quiet_numpy():
    with np.errstate(all="ignore"):
        yield


def every_f16() -> np.ndarray:
    """Every half but NaN, as float32."""
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(F32)
    return values[~np.isnan(values)]


def random_values(rng: np.random.Generator) -> np.ndarray:
    """Of all magnitudes, both signs, and what lies halfway between two halves or two bfloats."""
    magnitude = 10.0 ** rng.uniform(-9, 5, RANDOM_VALUES)
    values = (magnitude * rng.choice([-1, 1], RANDOM_VALUES)).astype(F32)
    bits = values.view(np.uint32)
    return np.concatenate([values, (bits & 0xFFFFE000 | 0x1000).view(F32), (bits & 0xFFFF0000 | 0x8000).view(F32)])


def same_bits(found: object, expected: np.ndarray) -> bool:
    return np.array_equal(np.asarray(found, F32).view(np.uint32), np.ascontiguousarray(expected, F32).view(np.uint32))


@pytest.mark.parametrize("draw", ["every f16", "random"])
def test_elu(kernels: Kernels, rng: np.random.Generator, draw: str):
    x = every_f16() if draw == "every f16" else random_values(rng)
    assert same_bits(kernels.elu(x), ggml.elu(x))


@pytest.mark.parametrize("draw", ["every f16", "random"])
def test_operand_rounding(kernels: Kernels, rng: np.random.Generator, draw: str):
    x = every_f16() if draw == "every f16" else random_values(rng)
    assert same_bits(kernels.round_conv_operand(x), ggml.half(x))
    assert same_bits(kernels.round_attention_operand(x), ggml.bfloat(x))


def test_kyutai_operands_are_not_rounded(rng: np.random.Generator):
    x = random_values(rng)
    for isa in Kernels.usable_isas():
        assert same_bits(Kernels(isa, "kyutai").round_conv_operand(x), x)
        assert same_bits(Kernels(isa, "kyutai").round_attention_operand(x), x)


@pytest.mark.parametrize("length", [0, 1, 15, 16, 17, 31, 33, 1000])
def test_any_length(kernels: Kernels, rng: np.random.Generator, length: int):
    x = (4 * rng.standard_normal(length + 3)).astype(F32)
    scalar = Kernels("scalar", "ggml")
    for offset in range(3):
        part = x[offset : offset + length]
        for name in ("elu", "gelu", "round_conv_operand", "round_attention_operand"):
            assert same_bits(getattr(kernels, name)(part), np.asarray(getattr(scalar, name)(part))), name


@pytest.mark.parametrize("reduction", [1, 7, 31, 32, 33, 64, 95, 255, 257, 600])
@pytest.mark.parametrize("outputs", [1, 15, 17, 40])
def test_matmul_is_tree32_and_half32(kernels: Kernels, rng: np.random.Generator, outputs: int, reduction: int):
    weights = rng.standard_normal((outputs, reduction)).astype(F32)
    columns = rng.standard_normal((3, reduction)).astype(F32)
    assert same_bits(kernels.matmul(weights, columns), ggml.dot32(weights, columns[:, np.newaxis]))
    weights, columns = ggml.half(weights), ggml.half(columns)
    found = kernels.matmul(weights, columns, conv_operands=True)
    assert same_bits(found, ggml.dot16(weights, columns[:, np.newaxis]))


@pytest.mark.parametrize("count", [4, 17, 66])
@pytest.mark.parametrize("reduction", [32, 64, 128, 192, 2048, 2090])
def test_every_tile_sums_alike(kernels: Kernels, rng: np.random.Generator, reduction: int, count: int):
    """Short, middling and long chains, and more columns than pass over the weights together."""
    weights = ggml.half(rng.standard_normal((37, reduction)).astype(F32))
    columns = ggml.half(rng.standard_normal((count, reduction)).astype(F32))
    assert same_bits(kernels.matmul(weights, columns), ggml.dot32(weights, columns[:, np.newaxis]))
    assert same_bits(kernels.matmul(weights, columns, conv_operands=True), ggml.dot16(weights, columns[:, np.newaxis]))


@pytest.mark.parametrize("segment", [1, 20, 64, 96])
def test_segments_are_summed_on_their_own(kernels: Kernels, rng: np.random.Generator, segment: int):
    """A transposed conv's taps: each a sum of its own, older first."""
    weights = rng.standard_normal((18, 2 * segment)).astype(F32)
    columns = rng.standard_normal((5, 2 * segment)).astype(F32)
    parts = [ggml.dot32(weights[:, at : at + segment], columns[:, np.newaxis, at : at + segment]) for at in (0, segment)]
    assert same_bits(kernels.matmul(weights, columns, segment=segment), parts[0] + parts[1])


@pytest.mark.parametrize("segment", [160, 2048])
def test_a_last_segment_of_nothing_but_a_tail(kernels: Kernels, rng: np.random.Generator, segment: int):
    weights = rng.standard_normal((18, segment + 9)).astype(F32)
    columns = rng.standard_normal((9, segment + 9)).astype(F32)
    parts = [ggml.dot32(weights[:, part], columns[:, np.newaxis, part]) for part in (np.s_[:segment], np.s_[segment:])]
    assert same_bits(kernels.matmul(weights, columns, segment=segment), parts[0] + parts[1])


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 9])
def test_columns_do_not_depend_on_their_number(kernels: Kernels, rng: np.random.Generator, count: int):
    weights = rng.standard_normal((70, 300)).astype(F32)
    columns = rng.standard_normal((count, 300)).astype(F32)
    assert same_bits(kernels.matmul(weights, columns), ggml.dot32(weights, columns[:, np.newaxis]))


@pytest.mark.parametrize("dim", [8, 11, 16, 24, 128, 512])
def test_layer_norm(kernels: Kernels, rng: np.random.Generator, dim: int):
    for scale in (1e-4, 1, 300):
        x, weight, bias = (scale * rng.standard_normal((3, dim))).astype(F32)
        assert same_bits(kernels.layer_norm(x, weight, bias), ggml.layer_norm(x, weight, bias))


@pytest.mark.parametrize("head_dim", [8, 16, 20, 32, 64, 72])
@pytest.mark.parametrize("slots", [1, 8, 12, 31, 40, 250])
def test_attention(kernels: Kernels, rng: np.random.Generator, head_dim: int, slots: int):
    """Hidden slots keep their place in the sums; 250 slots end in two that go through the scalar exponential."""
    for spread in (1.0, 30.0):
        query = ggml.bfloat((spread * rng.standard_normal(head_dim)).astype(F32))
        keys, values = ggml.bfloat(rng.standard_normal((2, slots, head_dim)).astype(F32))
        allowed = rng.random(slots) < 0.8
        allowed[rng.integers(slots)] = True
        seen = np.where(allowed, np.arange(slots), -1).tolist()
        scale = 1 / math.sqrt(head_dim)
        found = kernels.attention(query, keys, values, seen, scale)
        hidden = np.where(allowed[:, np.newaxis], values, values[0])
        assert same_bits(found, ggml.attention(query, keys, hidden, allowed, scale))


@pytest.mark.parametrize("entries", [1, 8, 16, 40, 256])
@pytest.mark.parametrize("count", [1, 3, 5])
def test_nearest_codeword(kernels: Kernels, rng: np.random.Generator, entries: int, count: int):
    codewords = rng.standard_normal((entries, 24)).astype(F32)
    residuals = rng.standard_normal((count, 24)).astype(F32)
    found = kernels.nearest_codeword(codewords, residuals)
    assert found == [ggml.nearest(codewords, residual) for residual in residuals]


@pytest.mark.parametrize("dim", [8, 256])
@pytest.mark.parametrize("length", [0.0, 1e-20, 1.0, 90.0, 1e18])
def test_nearest_codeword_among_many_nearly_as_near(kernels: Kernels, rng: np.random.Generator, dim: int, length: float):
    """Codewords a few ULP apart, of which rounding decides, near to and far from where they crowd."""
    crowd = np.repeat(rng.standard_normal((4, dim)).astype(F32), 50, axis=0)
    codewords = (crowd.view(np.int32) + rng.integers(-2, 3, crowd.shape, np.int32)).view(F32)
    residuals = (codewords[[3, 60, 130]] + length * rng.standard_normal((3, dim))).astype(F32)
    found = kernels.nearest_codeword(codewords, residuals)
    assert found == [ggml.nearest(codewords, residual) for residual in residuals]


def test_nearest_codeword_takes_the_highest_index_on_a_tie(kernels: Kernels, rng: np.random.Generator):
    codewords = rng.standard_normal((64, 8)).astype(F32)
    codewords[[5, 21, 60]] = codewords[33]
    assert kernels.nearest_codeword(codewords, codewords[33:34]) == [60]


def test_nearest_codeword_ties_where_one_plus_the_distance_rounds_alike(kernels: Kernels):
    """Distances of 1e-9 and 0 are the same to 1 / (1 + d)."""
    codewords = np.zeros((32, 8), F32)
    codewords[:, 0] = 1
    codewords[3, 0], codewords[9, 0] = 0, 3e-5
    assert kernels.nearest_codeword(codewords, np.zeros((1, 8), F32)) == [9]
    assert ggml.nearest(codewords, np.zeros(8, F32)) == 9
