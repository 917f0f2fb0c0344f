"""Blocks of four bits: what they stand for and how f32 becomes them, against the public gguf package."""

from __future__ import annotations

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from codec_core.convert.element_types import BLOCK_BYTES, BLOCK_ELEMENTS, QUANTISED_TYPES, narrow, widen
from codec_core.convert.quantised_blocks import Q4_K_BLOCK
from codec_core.errors import CheckpointError

Q = gguf.GGMLQuantizationType
PUBLIC = {"q8_0": Q.Q8_0, "q4_0": Q.Q4_0, "q4_k": Q.Q4_K}


@pytest.mark.parametrize("kind", QUANTISED_TYPES)
def test_any_bits_stand_for_what_the_public_package_says(rng: np.random.Generator, kind: str) -> None:
    blocks = rng.integers(0, 256, (500, BLOCK_BYTES[kind]), np.uint8)
    blocks[:, [1, 3] if kind == "q4_k" else [1]] &= 0xBB
    expected = gguf.dequantize(blocks.reshape(-1), PUBLIC[kind]).reshape(-1)
    found = widen(blocks.tobytes(), kind)
    assert found.dtype == np.float32
    assert np.array_equal(found.view(np.uint32), np.ascontiguousarray(expected).view(np.uint32))


@given(npst.arrays(np.float32, st.tuples(st.integers(1, 5), st.just(64)), elements=st.floats(-5e5, 5e5, width=32)))
def test_q4_0_has_the_bytes_of_the_public_package(rows: np.ndarray) -> None:
    # Blocks whose scale vanishes in f16 are zero whatever their integers are; only then may those differ.
    rows[np.abs(rows) < 1e-30] = 0
    assert narrow(rows.reshape(-1), "q4_0", "x").tobytes() == gguf.quantize(rows, PUBLIC["q4_0"]).tobytes()


def relative_rms(values: np.ndarray, kind: str) -> float:
    wide = values.astype(np.float64)
    off = widen(narrow(values, kind, "x").tobytes(), kind) - wide
    return float(np.sqrt((off**2).mean() / (wide**2).mean()))


def plain_q4_k(values: np.ndarray) -> np.ndarray:
    """Least and largest value to 0 and 15, and nothing rounded but the integers: what a fit has to beat."""
    groups = values.reshape(-1, 32).astype(np.float64)
    low = np.minimum(groups.min(axis=1, keepdims=True), 0)
    step = (groups.max(axis=1, keepdims=True) - low) / 15
    return (np.rint((groups - low) / step) * step + low).reshape(-1)


@pytest.mark.parametrize("shape", ["normal", "uniform", "heavy"])
def test_q4_k_is_a_fit(rng: np.random.Generator, shape: str) -> None:
    values = {
        "normal": rng.standard_normal(256 * 400),
        "uniform": rng.uniform(-1, 1, 256 * 400),
        "heavy": rng.standard_t(4, 256 * 400),
    }[shape].astype(np.float32)
    off = plain_q4_k(values) - values
    naive = float(np.sqrt((off**2).mean() / (values.astype(np.float64) ** 2).mean()))
    found = relative_rms(values, "q4_k")
    # Scales and minima of six bits cost less than the fit gains, but of uniform values, where there is nothing to gain.
    assert 0.5 * naive < found < (1.05 if shape == "uniform" else 1.0) * naive
    assert found < relative_rms(values, "q4_0")


@pytest.mark.parametrize("value", [0.0, 3.0, -3.0, 1e-30])
def test_q4_k_of_one_number(value: float) -> None:
    found = widen(narrow(np.full(512, value, np.float32), "q4_k", "x").tobytes(), "q4_k")
    assert np.abs(found - np.float32(value)).max() <= 1e-3 * abs(value) + 1e-29


def test_groups_of_q4_k_have_scales_of_their_own(rng: np.random.Generator) -> None:
    """Eight groups whose sizes are up to 30 times apart: the small ones are not lost."""
    values = (rng.standard_normal((200, 8, 32)) * np.linspace(1, 30, 8)[:, None]).astype(np.float32)
    off = widen(narrow(values.reshape(-1), "q4_k", "x").tobytes(), "q4_k").reshape(values.shape) - values
    errors = np.sqrt((off**2).mean(axis=(0, 2)) / (values**2).mean(axis=(0, 2)))
    assert errors.max() < 0.3
    assert errors[3:].max() < 0.09


@pytest.mark.parametrize(("kind", "limit"), [("q4_0", "524032"), ("q4_k", "4126752")])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
def test_a_value_no_scale_reaches_is_refused(kind: str, limit: str, value: float) -> None:
    values = np.zeros(768, np.float32)
    values[700] = value
    with pytest.raises(CheckpointError, match=rf"tensor 'w': found .*, expected finite values within {limit} for {kind}"):
        narrow(values, kind, "w")


def test_the_sizes_of_blocks() -> None:
    assert Q4_K_BLOCK.itemsize == BLOCK_BYTES["q4_k"]
    for kind in QUANTISED_TYPES:
        assert len(narrow(np.zeros(1024, np.float32), kind, "x").tobytes()) == 1024 // BLOCK_ELEMENTS[kind] * BLOCK_BYTES[kind]
