"""Kernels of every instruction set that this machine has; the others are skipped, and named."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from codec_core._ext import Kernels

ISAS = ("scalar", "avx2", "avx512")


@pytest.fixture
def kernels_of() -> Callable[..., Kernels]:
    """Kernels of an instruction set, under ``kyutai`` numerics or those named; skips the test where the machine lacks it."""

    def open_kernels(isa: str, *numerics: str) -> Kernels:
        if isa not in Kernels.usable_isas():
            pytest.skip(f"this machine has no {isa}")
        return Kernels(isa, *numerics)

    return open_kernels


@pytest.fixture(params=ISAS)
def kernels(request: pytest.FixtureRequest, kernels_of: Callable[..., Kernels]) -> Kernels:
    return kernels_of(request.param)
