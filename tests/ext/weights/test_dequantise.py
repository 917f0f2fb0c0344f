"""Rows of every type a language model may be kept in, against the public gguf package, bit for bit."""

from __future__ import annotations

import struct
from pathlib import Path

import gguf
import numpy as np
import pytest

from codec_core.errors import ModelContractError, SettingError
from codec_core.gguf_file import GgufFile

from .gguf_bytes import GgufFile as Written
from .gguf_bytes import Tensor

Q = gguf.GGMLQuantizationType
BLOCKS = {Q.F32: (1, 4), Q.F16: (1, 2), Q.BF16: (1, 2), Q.Q4_0: (32, 18), Q.Q8_0: (32, 34), Q.Q4_K: (256, 144)}
SCALES = {Q.Q4_0: 1, Q.Q8_0: 1, Q.Q4_K: 2}


def random_rows(rng: np.random.Generator, kind: Q, rows: int, width: int) -> bytes:
    """Any bits at all, but finite values and scales."""
    elements, size = BLOCKS[kind]
    blocks = rng.integers(0, 256, (rows * width // elements, size), np.uint8)
    if kind == Q.F32:
        return rng.standard_normal((rows, width)).astype("<f4").tobytes()
    halves = blocks[:, : 2 * SCALES.get(kind, 1)].copy().view("<u2")
    exponent = 0x7F80 if kind == Q.BF16 else 0x7C00
    halves[(halves & exponent) == exponent] &= 0x83FF
    blocks[:, : halves.shape[1] * 2] = halves.view(np.uint8)
    return blocks.tobytes()


def expected(data: bytes, kind: Q, width: int) -> np.ndarray:
    stored = np.frombuffer(data, np.uint8)
    if kind in {Q.F32, Q.F16}:
        return stored.view("<f4" if kind == Q.F32 else "<f2").astype(np.float32).reshape(-1, width)
    return gguf.quants.dequantize(stored, kind).reshape(-1, width)


def write(path: Path, kind: Q, data: bytes, dims: tuple[int, ...]) -> GgufFile:
    path.write_bytes(Written([], [Tensor("w", dims, int(kind), data)]).to_bytes())
    return GgufFile(path)


@pytest.mark.parametrize("kind", BLOCKS, ids=lambda kind: kind.name)
def test_rows_are_those_of_the_reference(kind: Q, rng: np.random.Generator, tmp_path: Path) -> None:
    data = random_rows(rng, kind, 300, 768)
    file = write(tmp_path / "x.gguf", kind, data, (768, 300))
    wanted = expected(data, kind, 768)
    assert file.rows("w").view(np.uint32).tobytes() == np.ascontiguousarray(wanted).view(np.uint32).tobytes()
    for first, rows in ((0, 1), (299, 1), (3, 0), (300, 0), (7, 120)):
        assert np.array_equal(file.rows("w", first, rows), wanted[first : first + rows])
    assert len(np.unique(wanted)) > 1000


def test_rows_it_does_not_have(rng: np.random.Generator, tmp_path: Path) -> None:
    file = write(tmp_path / "x.gguf", Q.Q8_0, random_rows(rng, Q.Q8_0, 4, 32), (32, 2, 2))
    assert file.rows("w").shape == (4, 32)
    with pytest.raises(SettingError, match=r"rows of tensor 'w': found 2 from row 3, expected within its 4"):
        file.rows("w", 3, 2)
    with pytest.raises(SettingError, match="tensor 'v': found no such tensor"):
        file.rows("v", 0, 1)


@pytest.mark.parametrize("kind", [Q.F32, Q.F16, Q.BF16, Q.Q8_0, Q.Q4_0, Q.Q4_K], ids=lambda kind: kind.name)
def test_a_value_that_is_not_finite_is_named(kind: Q, rng: np.random.Generator, tmp_path: Path) -> None:
    data = bytearray(random_rows(rng, kind, 3, 512))
    at = len(data) // 3
    data[at : at + 4] = {Q.F32: struct.pack("<f", np.nan), Q.BF16: b"\x80\x7f\x80\x7f"}.get(kind, b"\x00\x7e\x00\x7e")
    file = write(tmp_path / "x.gguf", kind, bytes(data), (512, 3))
    file.rows("w", 0, 1)
    with pytest.raises(ModelContractError, match=r"tensor 'w': found (NaN|infinity|-infinity) at index 5\d\d, expected finite"):
        file.rows("w", 1, 1)


def test_another_type(tmp_path: Path) -> None:
    file = write(tmp_path / "x.gguf", Q.I32, np.arange(6, dtype="<i4").tobytes(), (3, 2))
    with pytest.raises(ModelContractError, match="tensor 'w' type: found i32, expected f32, f16, bf16, q8_0, q4_0 or q4_k"):
        file.rows("w")
    assert file.integers("w").tolist() == [0, 1, 2, 3, 4, 5]
