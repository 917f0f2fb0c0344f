"""Numbers out of f32's range are refused wherever in the network they arise, also where an activation would hide them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from codec_core import CodecModel
from codec_core.errors import ModelContractError, NumericOverflowError
from tests.ext.weights.gguf_bytes import GgufFile, tiny_model, u32


def fill(file: GgufFile, name: str, value: float, last_tap: float | None = None) -> None:
    tensor = file.tensor(f"mimi.{name}")
    content = np.full(len(tensor.data) // 4, value, np.float32)
    if last_tap is not None:
        content[6::7] = last_tap
    tensor.data = content.tobytes()


@pytest.fixture
def overflowing_model_path(tmp_path: Path) -> Path:
    """A well-formed model whose first conv drives loud samples to infinity; the next turns that into -inf, and ELU into -1."""
    file = tiny_model()
    fill(file, "encoder.model.0.conv.conv.weight", 0, last_tap=3e38)
    fill(file, "encoder.model.0.conv.conv.bias", 0)
    for block, bias in ((1, 1), (3, 0)):
        fill(file, f"encoder.model.1.block.{block}.conv.conv.weight", 1)
        fill(file, f"encoder.model.1.block.{block}.conv.conv.bias", bias)
    fill(file, "encoder.model.3.conv.conv.weight", -1)
    path = tmp_path / "overflowing.gguf"
    path.write_bytes(file.to_bytes())
    return path


def test_an_overflow_that_the_result_hides_is_refused(overflowing_model_path: Path):
    session = CodecModel.open(overflowing_model_path).encoder(8)
    quiet = np.zeros(1920, np.float32)
    session.encode(quiet)
    before = session.snapshot()
    loud = quiet.copy()
    loud[-2:] = 2.0
    with pytest.raises(NumericOverflowError, match="frame 1"):
        session.encode(loud)
    assert session.snapshot() == before


@pytest.mark.parametrize("numerics", ["ggml", "ggml-causal"])
def test_a_context_too_small_for_a_ring_is_refused_at_open(tmp_path: Path, numerics: str):
    file = tiny_model()
    file.set_key(u32("moshi.mimi.transformer.context", 1))
    path = tmp_path / "narrow.gguf"
    path.write_bytes(file.to_bytes())
    with pytest.raises(ModelContractError, match=r"context.*found 1 steps, expected at least 2"):
        CodecModel.open(path, numerics=numerics)
    assert CodecModel.open(path, numerics="kyutai").encoder(8).encode(np.zeros(1920, np.float32)).shape == (8,)
