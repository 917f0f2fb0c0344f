"""The class q8_0: which tensors become it, their bytes against the public gguf package, and what is refused."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from codec_core import CodecModel
from codec_core.convert import convert_model, source_file
from codec_core.convert.element_types import narrow, recode, widen
from codec_core.errors import CheckpointError, ModelContractError, SettingError

Reader = Callable[[Path], tuple[dict[str, Any], dict[str, Any]]]
Q8_0 = gguf.GGMLQuantizationType.Q8_0
quantize = functools.partial(gguf.quantize, qtype=Q8_0)


def is_quantised(name: str) -> bool:
    """Written here a second time, independently of the converter."""
    return any(part in name for part in ("_projs.0.weight", "linear1.weight", "linear2.weight", "put_proj.weight"))


@given(npst.arrays(np.float32, st.tuples(st.integers(1, 5), st.just(64)), elements=st.floats(-8e6, 8e6, width=32)))
def test_bytes_are_those_of_the_public_package(rows: np.ndarray) -> None:
    # Blocks whose scale vanishes in f16 are zero whatever their integers are; only then may those differ.
    rows[np.abs(rows) < 1e-30] = 0
    assert narrow(rows.reshape(-1), "q8_0", "x").tobytes() == quantize(rows).tobytes()


def test_halves_round_away_from_zero() -> None:
    values = np.zeros(32, np.float32)
    values[:7] = [127, 0.5, -0.5, 1.5, -2.5, 0.49999997, 126.5]
    block = narrow(values, "q8_0", "x")[0]
    assert block["scale"] == 1
    assert block["quants"][:7].tolist() == [127, 1, -1, 2, -3, 0, 127]


def test_widening_is_exact(rng: np.random.Generator) -> None:
    values = rng.standard_normal(320).astype(np.float32)
    data = narrow(values, "q8_0", "x").tobytes()
    assert np.array_equal(widen(data, "q8_0"), gguf.dequantize(np.frombuffer(data, np.uint8), Q8_0).reshape(-1))
    assert b"".join(recode([data[:50], data[50:]], "q8_0", "f32", "x")) == widen(data, "q8_0").tobytes()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 8.4e6, 3e38])
def test_a_value_no_scale_reaches_is_refused(value: float) -> None:
    values = np.zeros(96, np.float32)
    values[70] = value
    with pytest.raises(CheckpointError, match=r"tensor 'w': found .*, expected finite values within 8319008 for q8_0"):
        narrow(values, "q8_0", "w")


@pytest.mark.parametrize("dtype", [None, "f16"])
def test_projections_and_nothing_else(dtype: str | None, wide_checkpoint: Path, tmp_path: Path, read_gguf: Reader) -> None:
    convert_model(wide_checkpoint, tmp_path / "plain.gguf", dtype=dtype)
    report = convert_model(wide_checkpoint, tmp_path / "x.gguf", dtype=dtype, quantize="q8_0")
    _, plain = read_gguf(tmp_path / "plain.gguf")
    metadata, tensors = read_gguf(tmp_path / "x.gguf")
    _, values = read_gguf(convert_f32(wide_checkpoint, tmp_path))
    assert metadata["moshi.mimi.weight_class"] == report.weight_class == "q8_0"
    quantised = [name for name in tensors if is_quantised(name)]
    assert [tensor.name for tensor in report.quantised] == quantised
    assert len(quantised) == 2 * 2 * 4 + 4
    for name, tensor in tensors.items():
        if name in quantised:
            matrix = values[name].data.reshape(-1, values[name].data.shape[-1])
            matrix = matrix.reshape(tuple(reversed([int(n) for n in tensor.shape])))
            assert tensor.tensor_type == Q8_0
            assert tensor.data.tobytes() == quantize(matrix).tobytes()
        else:
            assert tensor.tensor_type == plain[name].tensor_type
            assert tensor.data.tobytes() == plain[name].data.tobytes()
    assert len(tensors["mimi.quantizer.rvq_rest.input_proj.weight"].shape) == 2
    assert CodecModel.open(tmp_path / "x.gguf").info.weight_class == "q8_0"


def convert_f32(checkpoint: Path, folder: Path) -> Path:
    convert_model(checkpoint, folder / "f32.gguf", force=True)
    return folder / "f32.gguf"


def test_the_error_of_each_tensor_is_reported(wide_checkpoint: Path, tmp_path: Path, read_gguf: Reader) -> None:
    report = convert_model(wide_checkpoint, tmp_path / "x.gguf", quantize="q8_0")
    _, values = read_gguf(convert_f32(wide_checkpoint, tmp_path))
    for tensor in report.quantised:
        exact = values[tensor.name].data.astype(np.float64).reshape(-1)
        off = widen(narrow(exact.astype(np.float32), "q8_0", "x").tobytes(), "q8_0") - exact
        assert tensor.elements == exact.size
        assert tensor.largest_error == pytest.approx(np.abs(off).max())
        assert tensor.relative_rms == pytest.approx(np.sqrt((off**2).sum() / (exact**2).sum()))
        assert 1e-4 < tensor.relative_rms < 0.01


def test_every_source_gives_the_same_file(
    wide_checkpoint: Path, tmp_path: Path, write_transformers: Callable[[Path, Path], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    convert_model(wide_checkpoint, tmp_path / "x.gguf", quantize="q8_0")
    expected = CodecModel.open(tmp_path / "x.gguf")
    monkeypatch.setattr(source_file, "PIECE_BYTES", 52)
    convert_model(convert_f32(wide_checkpoint, tmp_path), tmp_path / "y.gguf", quantize="q8_0")
    convert_model(write_transformers(wide_checkpoint, tmp_path / "theirs"), tmp_path / "z.gguf", quantize="q8_0")
    pcm = np.random.default_rng(3).standard_normal(4 * 1920).astype(np.float32) * 0.1
    for name in ("y", "z"):
        assert np.array_equal(CodecModel.open(tmp_path / f"{name}.gguf").encoder(32).push(pcm), expected.encoder(32).push(pcm))


def test_a_quantised_source_is_copied(wide_checkpoint: Path, tmp_path: Path, read_gguf: Reader) -> None:
    convert_model(wide_checkpoint, tmp_path / "x.gguf", quantize="q8_0")
    _, expected = read_gguf(tmp_path / "x.gguf")
    for settings in ({}, {"quantize": "q8_0"}, {"dtype": "f32"}, {"dtype": "f16"}):
        report = convert_model(tmp_path / "x.gguf", tmp_path / "again.gguf", force=True, **settings)
        _, found = read_gguf(tmp_path / "again.gguf")
        assert report.quantised == ()
        assert report.weight_class == "q8_0"
        assert all(found[name].data.tobytes() == expected[name].data.tobytes() for name in expected if is_quantised(name))
    assert report.unchanged_tensors < report.tensors


def test_rows_of_no_whole_blocks_are_refused(tiny_checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"rows: found 16 values, expected a multiple of 32 for q8_0; convert without"):
        convert_model(tiny_checkpoint, tmp_path / "x.gguf", quantize="q8_0")
    assert [path.name for path in tmp_path.iterdir()] == []


def test_another_kind_of_blocks_is_refused(wide_checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="quantize: found q4_0, expected q8_0"):
        convert_model(wide_checkpoint, tmp_path / "x.gguf", quantize="q4_0")


def test_a_scale_that_is_not_finite_is_refused(wide_checkpoint: Path, tmp_path: Path, read_gguf: Reader) -> None:
    convert_model(wide_checkpoint, tmp_path / "x.gguf", quantize="q8_0")
    _, tensors = read_gguf(tmp_path / "x.gguf")
    name = "mimi.quantizer.rvq_first.output_proj.weight"
    data = bytearray((tmp_path / "x.gguf").read_bytes())
    offset = tensors[name].data_offset + 34 * 5
    data[offset : offset + 2] = np.float16(np.inf).tobytes()
    (tmp_path / "bad.gguf").write_bytes(data)
    for refuse in (CodecModel.open, functools.partial(convert_model, destination=tmp_path / "y.gguf")):
        with pytest.raises(ModelContractError, match=rf"{name}': found a scale of infinity in block 5"):
            refuse(tmp_path / "bad.gguf")
