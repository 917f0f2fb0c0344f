"""ELU, GELU and the rotary angles against double precision, on every instruction set."""

from __future__ import annotations

import math

import numpy as np
import pytest

from codec_core._ext import Kernels

RANDOM_VALUES = 400_000


def every_f16() -> np.ndarray:
    """Every finite half-precision value, as float32."""
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    return values[np.isfinite(values)]


def ulps(found: np.ndarray, exact: np.ndarray) -> float:
    """Largest error in units in the last place of the float32 nearest to the exact value."""
    spacing = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    return float((np.abs(found.astype(np.float64) - exact) / spacing).max())


def exact_gelu(x: np.ndarray) -> np.ndarray:
    wide = x.astype(np.float64)
    return 0.5 * wide * (1 + np.vectorize(math.erf)(wide / math.sqrt(2)))


def test_elu_of_every_f16(kernels: Kernels):
    x = every_f16()
    wide = x.astype(np.float64)
    assert ulps(kernels.elu(x), np.where(wide > 0, wide, np.expm1(np.minimum(wide, 0)))) <= 2


def test_elu_of_random_values(kernels: Kernels, rng: np.random.Generator):
    magnitude = 10.0 ** rng.uniform(-7, 2, RANDOM_VALUES)
    x = (magnitude * rng.choice([-1, 1], RANDOM_VALUES)).astype(np.float32)
    wide = x.astype(np.float64)
    assert ulps(kernels.elu(x), np.where(wide > 0, wide, np.expm1(np.minimum(wide, 0)))) <= 2


def test_elu_at_its_edges(kernels: Kernels):
    x = np.array([0, -0.0, -1e-45, -17.4, -18, -100, -3e38, -np.inf, 3e38, np.inf, np.nan], np.float32)
    y = np.asarray(kernels.elu(x))
    assert np.array_equal(y[:10], np.float32([0, 0, -1e-45, -1, -1, -1, -1, -1, 3e38, np.inf]))
    assert np.isnan(y[10])


@pytest.mark.parametrize("draw", ["every f16", "random"])
def test_gelu(kernels: Kernels, rng: np.random.Generator, draw: str):
    """The sum 1 + erf cancels for negative x, as in the published f32 model: the bound there is absolute, per |x| / 2."""
    x = every_f16() if draw == "every f16" else rng.uniform(-8, 8, RANDOM_VALUES).astype(np.float32)
    found = np.asarray(kernels.gelu(x))
    exact = exact_gelu(x)
    assert ulps(found[x > 0], exact[x > 0]) <= 3
    negative = x[(x < 0) & (x > -40)].astype(np.float64)
    error = np.abs(found[(x < 0) & (x > -40)].astype(np.float64) - exact[(x < 0) & (x > -40)])
    assert (error <= 2 * 2.0**-24 * -negative).all()


@pytest.mark.parametrize("kernel", ["elu", "gelu"])
@pytest.mark.parametrize("length", [0, 1, 15, 16, 17, 31, 33, 1000])
def test_every_instruction_set_gives_the_scalar_bits(kernels: Kernels, rng: np.random.Generator, kernel: str, length: int):
    x = (4 * rng.standard_normal(length + 3)).astype(np.float32)
    for offset in range(3):
        part = x[offset : offset + length]
        found = np.asarray(getattr(kernels, kernel)(part))
        expected = np.asarray(getattr(Kernels("scalar"), kernel)(part))
        assert np.array_equal(found.view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize("pairs", [4, 8, 32])
def test_rotary_angles_are_within_half_an_ulp(rng: np.random.Generator, pairs: int):
    """Against sines of the same f32 angle in double; numpy's own error there is far below one f32 ULP."""
    positions = np.concatenate([np.arange(600), rng.integers(0, 2**24, 2000)])
    frequencies = (10000.0 ** (-np.arange(pairs) / pairs)).astype(np.float32)
    for position in positions:
        angle = (np.float32(position) * frequencies).astype(np.float64)
        cosine, sine = np.asarray(Kernels.rotary(int(position), pairs, 10000.0))
        for found, exact in ((cosine, np.cos(angle)), (sine, np.sin(angle))):
            assert (np.abs(found - exact) <= 0.5001 * np.spacing(np.abs(exact).astype(np.float32))).all(), position
