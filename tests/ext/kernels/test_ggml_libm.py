"""What glibc 2.36 computes, on any C library: against digests of its results, and against the library where it is this one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from codec_core._ext import Kernels

from . import libm_inputs
from .libm_inputs import Function

DIGESTS = Path(__file__).parents[2] / "golden" / "vectors" / "libm_glibc.npz"
SPARSE = 29
"""A call through ctypes costs as much as a hundred of ours."""


def ours() -> dict[str, Function]:
    return {
        "expf": lambda values: np.asarray(Kernels.ggml_expf(values)),
        "expm1f": lambda values: np.asarray(Kernels.ggml_expm1f(values)),
        "tanhf": lambda values: np.asarray(Kernels.ggml_tanhf(values)),
        "sinf": lambda values: np.asarray(Kernels.ggml_sincosf(values))[0],
        "cosf": lambda values: np.asarray(Kernels.ggml_sincosf(values))[1],
    }


@pytest.fixture(scope="module")
def golden() -> dict[str, np.ndarray]:
    with np.load(DIGESTS) as file:
        return dict(file)


@pytest.mark.slow
def test_every_result_that_matters_is_glibc_s(golden: dict[str, np.ndarray]):
    """Among them sine and cosine of every position below 2^21 at every rotary frequency: 134 million values."""
    found = libm_inputs.all_digests(ours(), lambda _name: None)
    assert set(found) == set(golden) - {"rotary"}
    assert [name for name, value in found.items() if not np.array_equal(value, golden[name])] == []


@pytest.mark.parametrize("name", ["expf", "expm1f", "tanhf", "sinf", "cosf"])
def test_the_c_library_of_this_machine(name: str):
    functions = libm_inputs.c_library()
    if functions is None:
        pytest.skip("the C library here is not glibc 2.36 with FMA: the digests stand for it")
    if name in ("sinf", "cosf"):
        inputs = np.concatenate([libm_inputs.rotary_angles(pair, 977) for pair in range(libm_inputs.PAIRS)])
    else:
        inputs = getattr(libm_inputs, f"{name}_inputs")(SPARSE * 97)
    found, expected = ours()[name](inputs), functions[name](inputs)
    wrong = np.flatnonzero(found.view(np.uint32) != expected.view(np.uint32))
    assert not len(wrong), f"{name}({inputs[wrong[0]].item().hex()}): {found[wrong[0]]!r}, glibc {expected[wrong[0]]!r}"


def test_rotary_is_made_of_them(rng: np.random.Generator):
    frequencies = libm_inputs.frequencies()
    for position in [0, 1, 2, 249, 250, *rng.integers(0, libm_inputs.POSITIONS, 200).tolist()]:
        sine, cosine = np.asarray(Kernels.ggml_sincosf(np.float32(position) * frequencies))
        assert np.array_equal(Kernels.rotary(position, 32, 10000.0, glibc=True), np.stack([cosine, sine])), position


def test_edges():
    values = np.array([-0.0, -1e-45, -17.4, -20, -np.inf, np.nan], np.float32)
    expm1 = np.asarray(Kernels.ggml_expm1f(values))
    assert np.array_equal(expm1[:5].view(np.uint32), np.float32([-0.0, -1e-45, -1, -1, -1]).view(np.uint32))
    assert np.isnan(expm1[5])
    assert np.asarray(Kernels.ggml_expf(np.float32([0, -0.0, -np.inf, -200]))).tolist() == [1, 1, 0, 0]
    tanh = np.asarray(Kernels.ggml_tanhf(np.float32([0, 30, -30, np.inf, -np.inf])))
    assert tanh.tolist() == [0, 1, -1, 1, -1]
