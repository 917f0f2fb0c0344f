"""Products of weights of four bits equal their written definition bit for bit, on every instruction set.

The model here knows the blocks as files have them and the formula of docs/numerics.md, in whole numbers and one rounding at a
time; nothing of how weights lie in memory.
"""

from __future__ import annotations

from collections.abc import Callable

import gguf
import numpy as np
import pytest

from codec_core._ext import Kernels

from .test_quantised_matmul import ALL_ISAS, F32, quantised

Q = gguf.GGMLQuantizationType
TYPES = {"q4_0": (32, 18, Q.Q4_0), "q4_k": (256, 144, Q.Q4_K)}


@pytest.fixture(params=ALL_ISAS)
def kernels(request: pytest.FixtureRequest, kernels_of: Callable[..., Kernels]) -> Kernels:
    return kernels_of(request.param)


def random_blocks(rng: np.random.Generator, kind: str, outputs: int, inputs: int) -> np.ndarray:
    """Any bits, but for scales, which are of either sign: uint8 [outputs, bytes]."""
    elements, size, _ = TYPES[kind]
    blocks = rng.integers(0, 256, (outputs * inputs // elements, size), np.uint8)
    halves = 2 if kind == "q4_k" else 1
    scales = (rng.standard_normal((len(blocks), halves)) * 0.01).astype("<f2")
    blocks[:, : 2 * halves] = scales.view(np.uint8)
    return blocks.reshape(outputs, -1)


def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """One rounding: the products have 53 bits at most, and extended precision holds the sums of these magnitudes."""
    return (a.astype(np.longdouble) * b.astype(np.longdouble) + c.astype(np.longdouble)).astype(F32)


def chain_q4_0(row: np.ndarray, values: np.ndarray, scales: np.ndarray) -> np.ndarray:
    total = np.zeros(1, F32)
    for group, block in enumerate(row.reshape(-1, 18)):
        weights = [int(byte) % 16 - 8 for byte in block[2:]] + [int(byte) // 16 - 8 for byte in block[2:]]
        dot = sum(weight * int(value) for weight, value in zip(weights, values[group], strict=True))
        total = fma(np.array([dot]), block[:2].view("<f2").astype(F32) * scales[group], total)
    return total


def factors_of(packed: list[int], group: int) -> tuple[int, int]:
    """The published packing of six bits each, written down once more."""
    if group < 4:
        return packed[group] % 64, packed[group + 4] % 64
    return packed[group + 4] % 16 + packed[group - 4] // 64 * 16, packed[group + 4] // 16 + packed[group] // 64 * 16


def chain_q4_k(row: np.ndarray, values: np.ndarray, scales: np.ndarray) -> np.ndarray:
    total = np.zeros(1, F32)
    for number, block in enumerate(row.reshape(-1, 144)):
        scale, minimum = block[:4].view("<f2").astype(F32)
        packed, nibbles = [int(byte) for byte in block[4:16]], block[16:].reshape(4, 32)
        for group in range(8):
            factor, least = factors_of(packed, group)
            weights = [int(byte) // 16 ** (group % 2) % 16 for byte in nibbles[group // 2]]
            inputs = [int(value) for value in values[8 * number + group]]
            dot = sum(weight * value for weight, value in zip(weights, inputs, strict=True))
            input_scale = scales[8 * number + group]
            total = fma(np.array([dot]), np.array([scale * F32(factor) * input_scale]), total)
            total = fma(np.array([minimum * F32(least)]), np.array([-(input_scale * F32(sum(inputs)))]), total)
    return total


def expected(kind: str, blocks: np.ndarray, column: np.ndarray) -> np.ndarray:
    chain = chain_q4_0 if kind == "q4_0" else chain_q4_k
    values, scales = quantised(column)
    return np.concatenate([chain(row, values, scales.astype(F32)) for row in blocks])


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(("outputs", "inputs"), [(1, 256), (17, 512), (64, 256), (100, 768)])
def test_integers_within_a_group_and_a_chain_over_the_groups(
    kernels: Kernels, rng: np.random.Generator, kind: str, outputs: int, inputs: int
):
    blocks = random_blocks(rng, kind, outputs, inputs)
    column = rng.standard_normal(inputs).astype(F32)
    found = np.asarray(kernels.quantised_matmul(blocks, column[None], kind))[0]
    assert np.array_equal(found.view(np.uint32), expected(kind, blocks, column).view(np.uint32))


@pytest.mark.parametrize("groups", [1, 3, 8, 15])
def test_rows_of_any_number_of_groups(kernels: Kernels, rng: np.random.Generator, groups: int):
    blocks = random_blocks(rng, "q4_0", 33, 32 * groups)
    column = rng.standard_normal(32 * groups).astype(F32)
    found = np.asarray(kernels.quantised_matmul(blocks, column[None], "q4_0"))[0]
    assert np.array_equal(found.view(np.uint32), expected("q4_0", blocks, column).view(np.uint32))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7, 13, 33, 130])
def test_columns_do_not_depend_on_their_number(kernels: Kernels, rng: np.random.Generator, kind: str, count: int):
    blocks = random_blocks(rng, kind, 70, 512)
    columns = rng.standard_normal((count, 512)).astype(F32)
    together = np.asarray(kernels.quantised_matmul(blocks, columns, kind))
    alone = [np.asarray(Kernels("scalar").quantised_matmul(blocks, column[None], kind))[0] for column in columns]
    assert np.array_equal(together.view(np.uint32), np.stack(alone).view(np.uint32))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("nibble", [0, 255])
def test_the_largest_sums_do_not_saturate(kernels: Kernels, kind: str, sign: float, nibble: int):
    blocks = np.full((16, 512 // TYPES[kind][0], TYPES[kind][1]), nibble, np.uint8)
    blocks[:, :, :2] = np.frombuffer(np.float16(1).tobytes(), np.uint8)
    if kind == "q4_k":
        blocks[:, :, 2:4] = blocks[:, :, :2]
    rows = blocks.reshape(16, -1)
    column = np.full(512, sign * 127, F32)
    found = np.asarray(kernels.quantised_matmul(rows, column[None], kind))[0]
    assert np.array_equal(found, expected(kind, rows, column))


@pytest.mark.parametrize("kind", TYPES)
def test_products_are_near_those_of_the_numbers_the_blocks_stand_for(kernels: Kernels, rng: np.random.Generator, kind: str):
    """Apart by the rounding of the inputs, and no more."""
    blocks = random_blocks(rng, kind, 48, 1024)
    columns = rng.standard_normal((3, 1024)).astype(F32)
    wide = gguf.quants.dequantize(blocks, TYPES[kind][2]).astype(np.float64)
    exact = columns.astype(np.float64) @ wide.T
    error = np.asarray(kernels.quantised_matmul(blocks, columns, kind)) - exact
    assert 1e-4 < np.sqrt((error**2).mean() / (exact**2).mean()) < 0.03


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_does_not_get_lost(kernels: Kernels, rng: np.random.Generator, kind: str, value: float):
    column = rng.standard_normal((1, 256)).astype(F32)
    column[0, rng.integers(256)] = value
    assert not np.isfinite(np.asarray(kernels.quantised_matmul(random_blocks(rng, kind, 33, 256), column, kind))).any()


def test_q4_0_has_the_bits_of_q8_0_of_the_same_numbers(kernels: Kernels, rng: np.random.Generator):
    blocks = random_blocks(rng, "q4_0", 40, 320)
    grouped = blocks.reshape(-1, 18)
    numbers = np.concatenate([grouped[:, 2:] & 15, grouped[:, 2:] >> 4], axis=1).astype(np.int8) - 8
    eight = np.concatenate([grouped[:, :2], numbers.view(np.uint8)], axis=1).reshape(40, -1)
    columns = rng.standard_normal((3, 320)).astype(F32)
    four, wide = kernels.quantised_matmul(blocks, columns, "q4_0"), kernels.quantised_matmul(eight, columns, "q8_0")
    assert np.array_equal(np.asarray(four), np.asarray(wide))
