"""The search among codewords of f16 finds what that among the same values in f32 finds, on every instruction set."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from codec_core._ext import Kernels

ALL_ISAS = ["scalar", "avx2", "avx512", "avx512_vnni"]
F32 = np.float32


@pytest.fixture(params=ALL_ISAS)
def isa(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=["kyutai", "ggml"])
def both(request: pytest.FixtureRequest, isa: str, kernels_of: Callable[..., Kernels]) -> tuple[Kernels, Kernels]:
    """Kernels of an instruction set and those of plain loops, under the same numerics."""
    return kernels_of(isa, request.param), Kernels("scalar", request.param)


def require_alike(both: tuple[Kernels, Kernels], codewords: np.ndarray, residuals: np.ndarray) -> list[int]:
    kernels, scalar = both
    found = kernels.narrow_nearest_codeword(codewords.view(np.uint16), residuals)
    wide = codewords.astype(F32)
    assert found == kernels.nearest_codeword(wide, residuals)
    assert found == scalar.nearest_codeword(wide, residuals)
    return found


@pytest.mark.parametrize("entries", [1, 8, 16, 40, 200])
@pytest.mark.parametrize("count", [1, 2, 5, 11, 70])
def test_any_number_of_entries_and_vectors(
    both: tuple[Kernels, Kernels], rng: np.random.Generator, entries: int, count: int
) -> None:
    codewords = rng.standard_normal((entries, 24)).astype(np.float16)
    residuals = rng.standard_normal((count, 24)).astype(F32)
    found = require_alike(both, codewords, residuals)
    distances = ((codewords[:, None].astype(np.float64) - residuals) ** 2).sum(axis=2)
    assert found == distances.argmin(axis=0).tolist()


@pytest.mark.parametrize("dim", [1, 8, 256])
@pytest.mark.parametrize("length", [0.0, 1e-7, 1e-3, 1.0, 3e4])
def test_among_many_nearly_as_near(both: tuple[Kernels, Kernels], rng: np.random.Generator, dim: int, length: float) -> None:
    """Codewords a few ULP apart, subnormal ones and near the end of f16's range among them, of which rounding decides."""
    crowd = np.repeat((length * rng.standard_normal((4, dim))).clip(-6e4, 6e4).astype(np.float16), 50, axis=0)
    codewords = (crowd.view(np.int16) + rng.integers(-2, 3, crowd.shape, np.int16)).view(np.float16)
    codewords[~np.isfinite(codewords)] = 0
    residuals = (codewords[[3, 60, 130]] + 0.01 * length * rng.standard_normal((3, dim))).astype(F32)
    require_alike(both, codewords, residuals)


def test_ties_fall_as_they_do_among_wide_ones(both: tuple[Kernels, Kernels], rng: np.random.Generator) -> None:
    codewords = rng.standard_normal((64, 8)).astype(np.float16)
    codewords[[5, 21, 60]] = codewords[33]
    assert require_alike(both, codewords, codewords[33:34].astype(F32))[0] in {5, 60}
