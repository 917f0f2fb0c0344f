"""The product of quantised weights and inputs equals its written definition bit for bit, on every instruction set."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from codec_core._ext import Kernels
from codec_core.convert.quantised_blocks import Q8_0_BLOCK

ALL_ISAS = ["scalar", "avx2", "avx512", "avx512_vnni"]
F32 = np.float32


@pytest.fixture(params=ALL_ISAS)
def kernels(request: pytest.FixtureRequest, kernels_of: Callable[..., Kernels]) -> Kernels:
    return kernels_of(request.param)


def random_blocks(rng: np.random.Generator, outputs: int, groups: int) -> np.ndarray:
    """Every byte there is, -128 included, which no quantiser writes but a file may hold."""
    blocks = np.empty((outputs, groups), Q8_0_BLOCK)
    blocks["quants"] = rng.integers(-128, 128, (outputs, groups, 32))
    blocks["scale"] = rng.standard_normal((outputs, groups)) * 0.01
    return blocks


def as_bytes(blocks: np.ndarray) -> np.ndarray:
    return np.frombuffer(blocks.tobytes(), np.uint8).reshape(len(blocks), -1)


def quantised(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values [groups, 32] and scales [groups] of an input, as the kernels' header defines them."""
    groups = column.reshape(-1, 32)
    largest = np.abs(groups).max(axis=1)
    inverse = np.where(largest < F32(2.0**-100), F32(0), F32(127) / np.maximum(largest, F32(2.0**-100)))
    return np.rint(groups * inverse[:, None].astype(F32)).astype(np.int64), largest / F32(127)


def expected(blocks: np.ndarray, column: np.ndarray) -> np.ndarray:
    values, scales = quantised(column)
    total = np.zeros(len(blocks), F32)
    for group in range(blocks.shape[1]):
        dots = blocks["quants"][:, group].astype(np.int64) @ values[group]
        factors = blocks["scale"][:, group].astype(F32) * scales[group]
        # An integer below 2^24 times an f32 is exact in double; extended precision leaves the sum its one rounding.
        total = (dots.astype(np.longdouble) * factors.astype(np.longdouble) + total.astype(np.longdouble)).astype(F32)
    return total


@pytest.mark.parametrize("outputs", [1, 15, 16, 17, 64, 100])
@pytest.mark.parametrize("groups", [1, 2, 3, 16])
def test_integers_within_a_group_and_a_chain_over_the_groups(
    kernels: Kernels, rng: np.random.Generator, outputs: int, groups: int
):
    blocks = random_blocks(rng, outputs, groups)
    columns = rng.standard_normal((2, 32 * groups)).astype(F32)
    found = np.asarray(kernels.quantised_matmul(as_bytes(blocks), columns))
    for n in range(2):
        assert np.array_equal(found[n].view(np.uint32), expected(blocks, columns[n]).view(np.uint32))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 33, 130])
def test_columns_do_not_depend_on_their_number(kernels: Kernels, rng: np.random.Generator, count: int):
    blocks = random_blocks(rng, 70, 5)
    columns = rng.standard_normal((count, 160)).astype(F32)
    together = np.asarray(kernels.quantised_matmul(as_bytes(blocks), columns))
    for n in range(count):
        alone = np.asarray(Kernels("scalar").quantised_matmul(as_bytes(blocks), columns[n : n + 1]))[0]
        assert np.array_equal(together[n], alone)


@pytest.mark.parametrize("weight", [-128, 127])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_the_largest_sums_do_not_saturate(kernels: Kernels, weight: int, sign: float):
    blocks = np.empty((16, 2), Q8_0_BLOCK)
    blocks["quants"], blocks["scale"] = weight, 1.0
    found = np.asarray(kernels.quantised_matmul(as_bytes(blocks), np.full((1, 64), sign * 127, F32)))
    assert np.array_equal(found[0], np.full(16, sign * weight * 127 * 64, F32))


def test_inputs_round_to_the_nearest_even(kernels: Kernels):
    blocks = np.zeros((32, 1), Q8_0_BLOCK)
    blocks["quants"][np.arange(32), 0, np.arange(32)] = 1
    blocks["scale"] = 1.0
    column = np.zeros(32, F32)
    column[:9] = [127, 0.5, 1.5, -0.5, -1.5, 2.5, 0.49999997, 126.5, -126.5]
    found = np.asarray(kernels.quantised_matmul(as_bytes(blocks), column[None]))[0]
    assert found[:9].tolist() == [127, 0, 2, 0, -2, 2, 0, 126, -126]


def test_a_silent_group_is_nothing(kernels: Kernels, rng: np.random.Generator):
    blocks = random_blocks(rng, 20, 2)
    column = np.zeros((1, 64), F32)
    column[0, :32] = 1e-35
    column[0, 5] = -1e-40
    assert not np.asarray(kernels.quantised_matmul(as_bytes(blocks), column)).any()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 15, 16, 63])
def test_what_is_not_finite_does_not_get_lost(kernels: Kernels, rng: np.random.Generator, value: float, place: int):
    """Integers cannot hold it: were it dropped, an overflow would go unseen."""
    column = rng.standard_normal((1, 64)).astype(F32)
    column[0, place] = value
    assert not np.isfinite(np.asarray(kernels.quantised_matmul(as_bytes(random_blocks(rng, 33, 2)), column))).any()


def test_both_numerics_have_the_same_product(rng: np.random.Generator):
    blocks, columns = as_bytes(random_blocks(rng, 40, 4)), rng.standard_normal((3, 128)).astype(F32)
    best = Kernels.usable_isas()[0]
    kyutai, ggml = (np.asarray(Kernels(best, name).quantised_matmul(blocks, columns)) for name in ("kyutai", "ggml"))
    assert np.array_equal(kyutai, ggml)
