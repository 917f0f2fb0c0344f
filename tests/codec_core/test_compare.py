from __future__ import annotations

import math

import numpy as np
import pytest

from codec_core.compare import compare_code_sets, compare_sounds


def test_equal_codes(rng: np.random.Generator) -> None:
    codes = rng.integers(0, 2048, (8, 40))
    found = compare_code_sets(codes, codes.astype(np.int16))
    assert found.token_exact
    assert (found.code_match, found.prefix_match(1), found.first_difference) == (1, 1, None)
    assert found.level_match == [1] * 8
    assert found.frame_match == [1] * 40


def test_shares(rng: np.random.Generator) -> None:
    codes = rng.integers(0, 2048, (4, 10))
    other = codes.copy()
    other[0, 9] += 1
    other[3, [2, 3]] += 1
    found = compare_code_sets(codes, other)
    assert found.code_match == pytest.approx(37 / 40)
    assert found.level_match == pytest.approx([0.9, 1, 1, 0.8])
    assert found.frame_match[2] == 0.75
    assert (found.prefix_match(1), found.prefix_match(3), found.prefix_match(99)) == pytest.approx((0.9, 29 / 30, 37 / 40))
    assert found.first_difference is not None
    assert (found.first_difference.frame, found.first_difference.level) == (2, 3)


@pytest.mark.parametrize("shape", [(4, 9), (3, 10), (5, 11), (0, 10), (4, 0)])
def test_other_shapes_are_a_difference_even_where_all_in_common_agrees(
    rng: np.random.Generator, shape: tuple[int, int]
) -> None:
    codes = rng.integers(0, 2048, (5, 11))
    first, second = codes[:4, :10], codes[: shape[0], : shape[1]]
    found = compare_code_sets(first, second)
    assert not found.token_exact
    assert found.code_match == (1 if found.matches.size else 0)
    assert found.first_difference is not None
    assert found.first_difference.found == f"shape {list(second.shape)}"


def test_sounds(rng: np.random.Generator) -> None:
    sound = (0.5 * np.sin(np.arange(48000) * 0.05)).astype(np.float32)
    same = compare_sounds(sound, sound.copy())
    assert (same.bit_exact, same.first_difference_sample, same.psnr_db, same.snr_db) == (True, None, math.inf, math.inf)
    noise = rng.standard_normal(48000) * 0.005
    other = compare_sounds(sound, (sound + noise).astype(np.float32))
    assert other.psnr_db == pytest.approx(20 * math.log10(1 / 0.005), abs=0.1)
    assert other.snr_db == pytest.approx(other.psnr_db + 20 * math.log10(0.5 / math.sqrt(2)), abs=0.1)
    assert not other.bit_exact


def test_a_sign_of_zero_is_a_difference_in_bits_only() -> None:
    found = compare_sounds(np.float32([0, 1]), np.float32([-0.0, 1]))
    assert (found.bit_exact, found.first_difference_sample, found.largest_error) == (False, 0, 0)


@pytest.mark.parametrize(("first", "second"), [(0, 0), (0, 5), (5, 3)])
def test_sounds_of_any_length(first: int, second: int) -> None:
    found = compare_sounds(np.ones(first, np.float32), np.ones(second, np.float32))
    assert (found.expected_samples, found.found_samples) == (first, second)
    assert found.bit_exact == (first == second)
    assert found.psnr_db == math.inf


def test_silence_against_noise() -> None:
    found = compare_sounds(np.zeros(10, np.float32), np.full(10, 0.1, np.float32))
    assert found.psnr_db == pytest.approx(20)
    assert found.snr_db == -math.inf
