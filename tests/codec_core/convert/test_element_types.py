from __future__ import annotations

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from codec_core.convert.element_types import narrow, recode, widen
from codec_core.errors import CheckpointError


def test_every_f16_and_bf16_widens_exactly() -> None:
    bits = np.arange(65536, dtype=np.uint16)
    halves = widen(bits.tobytes(), "f16")
    assert np.array_equal(halves, bits.view(np.float16).astype(np.float64), equal_nan=True)
    brain = widen(bits.tobytes(), "bf16")
    assert np.array_equal(brain.view(np.uint32), bits.astype(np.uint32) << 16)


@given(npst.arrays(np.float32, st.integers(0, 30), elements=st.floats(-65000, 65000, width=32)))
def test_narrowing_is_to_the_nearest_even(values: np.ndarray) -> None:
    found = narrow(values, "f16", "x")
    assert np.array_equal(found, values.astype(np.float16))
    assert narrow(values, "f32", "x").tobytes() == values.tobytes()


def test_ties_go_to_even() -> None:
    ties = np.array([1 + 2**-11, 1 + 3 * 2**-11, 2**-25, 3 * 2**-25, 65519.996], np.float32)
    assert narrow(ties, "f16", "x").tolist() == [1.0, 1 + 2**-9, 0.0, 2**-23, 65504.0]


def test_a_value_past_f16_is_refused() -> None:
    with pytest.raises(CheckpointError, match=r"tensor 'w': found 65520\.0, expected values within 65504 for f16"):
        narrow(np.array([0, 65520], np.float32), "f16", "w")


def test_the_same_type_is_the_same_bytes() -> None:
    pieces = [b"any", b"thing"]
    assert all(a is b for a, b in zip(recode(pieces, "f16", "f16", "x"), pieces, strict=True))
    assert b"".join(recode([b"\x00\x3c"], "f16", "f32", "x")) == np.float32(1).tobytes()


def test_narrowing_to_bf16_is_that_of_the_public_package(rng: np.random.Generator) -> None:
    bits = rng.integers(0, 1 << 32, 100_000, np.uint64).astype(np.uint32)
    bits = bits[(bits & 0x7F800000) < 0x7F000000]
    values = np.concatenate([bits.view(np.float32), [0, -0.0, 1 + 2**-8, 1 + 3 * 2**-8, 1e-40, np.inf, -np.inf]]).astype("<f4")
    assert narrow(values, "bf16", "x").tobytes() == gguf.quants.quantize(values, gguf.GGMLQuantizationType.BF16).tobytes()
    assert np.isnan(widen(narrow(np.array([np.nan], np.float32), "bf16", "x").tobytes(), "bf16")).all()
    with pytest.raises(
        CheckpointError, match=r"tensor 'w': found 3.40282346638528\d+e\+38, expected values within 3.39e38 for bf16"
    ):
        narrow(np.array([0, np.finfo(np.float32).max], np.float32), "bf16", "w")
