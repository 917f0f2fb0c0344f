"""The kernels only the language model uses: narrow weights, its norm and its gate, on every instruction set."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from codec_core._ext import Kernels
from tests.ext.kernels.conftest import ISAS

F32 = np.float32


def bfloat16_bits(values: np.ndarray) -> np.ndarray:
    return (values.astype(F32).view(np.uint32) >> 16).astype(np.uint16)


@pytest.mark.parametrize("bfloat16", [False, True], ids=["f16", "bf16"])
@pytest.mark.parametrize("count", [1, 2, 3, 8, 13, 45])
@pytest.mark.parametrize("shape", [(1, 1), (17, 31), (70, 300), (600, 256)])
def test_narrow_weights_multiply_as_wide_ones(
    kernels: Kernels, rng: np.random.Generator, shape: tuple[int, int], count: int, bfloat16: bool
):
    weights = rng.standard_normal(shape).astype(F32)
    columns = rng.standard_normal((count, shape[1])).astype(F32)
    bits = bfloat16_bits(weights) if bfloat16 else weights.astype(np.float16).view(np.uint16)
    wide = (bits.astype(np.uint32) << 16).view(F32) if bfloat16 else bits.view(np.float16).astype(F32)
    found = np.asarray(kernels.narrow_matmul(bits, columns, bfloat16))
    assert np.array_equal(found, np.asarray(Kernels("scalar").matmul(wide, columns)))


@pytest.mark.parametrize("bfloat16", [False, True], ids=["f16", "bf16"])
@pytest.mark.parametrize("isa", ISAS)
def test_narrow_weights_in_the_order_of_ggml(
    kernels_of: Callable[..., Kernels], rng: np.random.Generator, isa: str, bfloat16: bool
):
    weights, columns = rng.standard_normal((70, 100)).astype(F32), rng.standard_normal((5, 100)).astype(F32)
    bits = bfloat16_bits(weights) if bfloat16 else weights.astype(np.float16).view(np.uint16)
    wide = (bits.astype(np.uint32) << 16).view(F32) if bfloat16 else bits.view(np.float16).astype(F32)
    found = np.asarray(kernels_of(isa, "ggml").narrow_matmul(bits, columns, bfloat16))
    assert np.array_equal(found, np.asarray(Kernels("scalar", "ggml").matmul(wide, columns)))


def test_every_narrow_value_widens_exactly(kernels: Kernels):
    """A product with one, over all bit patterns that are finite."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    one = np.ones((1, 1), F32)
    for bfloat16 in (False, True):
        wide = (bits.astype(np.uint32) << 16).view(F32) if bfloat16 else bits.view(np.float16).astype(F32)
        finite = np.isfinite(wide)
        found = np.asarray(kernels.narrow_matmul(bits[finite][:, np.newaxis], one, bfloat16))[0]
        assert np.array_equal(found, wide[finite])


def lanes16(terms: np.ndarray) -> np.float32:
    sums = terms.copy()
    for half in (8, 4, 2, 1):
        sums = sums[:half] + sums[half : 2 * half]
    return sums[0]


@pytest.mark.parametrize("dim", [1, 15, 16, 33, 128, 4096])
@pytest.mark.parametrize("size", [1e-5, 1.0, 1e4])
def test_rms_norm(kernels: Kernels, rng: np.random.Generator, dim: int, size: float):
    x = (size * rng.standard_normal(dim)).astype(F32)
    weight = rng.standard_normal(dim).astype(F32)
    found = np.asarray(kernels.rms_norm(x, weight))
    assert np.array_equal(found, np.asarray(Kernels("scalar").rms_norm(x, weight)))
    wide = x.astype(np.float64)
    exact = wide * (weight / np.sqrt(1e-8 + (wide**2).mean()))
    assert np.abs(found - exact).max() <= 4e-7 * np.abs(exact).max()


def test_rms_norm_sums_by_lanes16(kernels: Kernels, rng: np.random.Generator):
    x, weight = rng.standard_normal((2, 16)).astype(F32)
    scale = F32(1) / np.sqrt(F32(1e-8) + lanes16(x * x) / F32(16))
    assert np.array_equal(np.asarray(kernels.rms_norm(x, weight)), x * (weight * scale))


def test_silu_gate(kernels: Kernels, rng: np.random.Generator):
    magnitude = 10.0 ** rng.uniform(-6, 1.9, 100_003)
    u = (magnitude * rng.choice([-1, 1], magnitude.size)).astype(F32)
    found = np.asarray(kernels.silu_gate(u, np.ones_like(u)))
    assert np.array_equal(found, np.asarray(Kernels("scalar").silu_gate(u, np.ones_like(u))))
    wide = u.astype(np.float64)
    exact = wide / (1 + np.exp(-wide))
    spacing = np.spacing(np.abs(exact).astype(F32)).astype(np.float64)
    assert (np.abs(found - exact) / spacing).max() <= 3
    v = rng.standard_normal(u.size).astype(F32)
    assert np.array_equal(np.asarray(kernels.silu_gate(u, v)), found * v)


def test_silu_at_its_edges(kernels: Kernels):
    u = np.array([0, -0.0, 100, 3e38, -86, -88, -3e38, np.inf, np.nan], F32)
    found = np.asarray(kernels.silu_gate(u, np.ones_like(u)))
    assert np.array_equal(found[:4], F32([0, 0, 100, 3e38]))
    assert -1e-35 < found[4] < 0
    assert (found[5:7] == 0).all()
    assert found[7] == np.inf
    assert np.isnan(found[8])
