"""Weight classes of language models: which tensors become what, with which error; and the engine runs them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codec_core.convert import convert_language_model
from codec_core.convert.element_types import narrow, widen
from codec_core.convert.lm_quantise import LM_QUANTISATIONS, quantised_type
from codec_core.errors import SettingError
from codec_core.gguf_file import GgufFile
from codec_core.language_model import LanguageModel
from codec_core.synth_lm import lm_arrays
from tests.lm_sources import write_checkpoint, write_raw

Reader = Callable[[Path], tuple[dict[str, Any], dict[str, Any]]]


@pytest.mark.parametrize(
    ("name", "inputs", "types"),
    [
        ("transformer.layers.0.self_attn.in_projs.0.weight", 4096, ("q8_0", "q4_k", "q4_0")),
        ("transformer.layers.31.gating.linear_out.weight", 11264, ("q8_0", "q4_k", "q4_0")),
        ("transformer.layers.3.gating.linear_out.weight", 7040, ("q8_0", "q4_0", "q4_0")),
        ("depformer.layers.0.gating.3.linear_in.weight", 1024, ("q8_0", "q4_k", "q4_0")),
        ("depformer_in.7.weight", 4096, ("q8_0", "q4_k", "q4_0")),
        ("emb.15.weight", 4096, ("q8_0", "q8_0", "q8_0")),
        ("depformer_emb.6.low_rank.weight", 128, ("q8_0", "q8_0", "q8_0")),
        ("depformer_text_emb.out1.weight", 128, ("q8_0", "q8_0", "q8_0")),
        ("text_emb.weight", 4096, ("q8_0", "q8_0", "q8_0")),
        ("text_linear.weight", 4096, ("q8_0", "q8_0", "q8_0")),
        ("linears.3.weight", 1024, ("q8_0", "q8_0", "q8_0")),
        ("extra_heads.0.weight", 2048, (None, None, None)),
        ("transformer.layers.0.norm1.alpha", 4096, (None, None, None)),
        ("condition_provider.conditioners.cfg.embed.weight", 16, (None, None, None)),
        ("depformer_in.0.weight", 100, (None, None, None)),
    ],
)
def test_types(name: str, inputs: int, types: tuple[str | None, ...]) -> None:
    assert tuple(quantised_type(name, inputs, weight_class) for weight_class in LM_QUANTISATIONS) == types


@pytest.mark.parametrize("weight_class", LM_QUANTISATIONS)
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_a_converted_file(weight_class: str, dtype: str, tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "x.safetensors", "b", split=True)
    convert_language_model(source, tmp_path / "plain.gguf", dtype=dtype, tokenizer="none")
    report = convert_language_model(source, tmp_path / "x.gguf", dtype=dtype, quantize=weight_class, tokenizer="none")
    plain, found = GgufFile(tmp_path / "plain.gguf"), GgufFile(tmp_path / "x.gguf")
    errors = {tensor.name: tensor for tensor in report.quantised}
    exact = {f"lm.{name}": values for name, values in lm_arrays("b", split=True).items()}
    assert [tensor.name for tensor in report.quantised] == [name for name in found.tensors if name in errors]
    for name, tensor in found.tensors.items():
        # Widths of 128, 64 and 32 are no whole blocks of q4_k.
        wanted = quantised_type(name.removeprefix("lm."), tensor.dims[0], weight_class)
        assert tensor.type == (wanted or plain.tensors[name].type)
        assert (name in errors) == (wanted is not None)
        if wanted is not None:
            values = exact[name].reshape(-1)
            expected = widen(narrow(values, wanted, name).tobytes(), wanted)
            assert np.array_equal(found.rows(name).reshape(-1), expected)
            off = expected.astype(np.float64) - values
            assert errors[name].type == wanted
            assert errors[name].elements == values.size
            assert errors[name].relative_rms == pytest.approx(np.sqrt((off**2).sum() / (values.astype(np.float64) ** 2).sum()))
            assert errors[name].largest_error == pytest.approx(np.abs(off).max())
    assert 0.002 < max(error.relative_rms for error in errors.values()) < (0.01 if weight_class == "q8_0" else 0.12)
    model = LanguageModel.open(tmp_path / "x.gguf")
    session = model.session()
    outputs = [session.step([step + level for level in range(8)]) for step in range(6)]
    assert len([output for output in outputs if output is not None]) == 4


def test_what_is_in_blocks_stays(tmp_path: Path) -> None:
    source = write_raw(tmp_path / "x.gguf", "a", "q4_0")
    report = convert_language_model(source, tmp_path / "y.gguf", quantize="q8_0", tokenizer="none")
    assert report.quantised == ()
    assert report.unchanged_tensors == report.tensors


def test_the_same_bytes_for_pieces_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_checkpoint(tmp_path / "x.safetensors", "s")
    convert_language_model(source, tmp_path / "x.gguf", quantize="q4_0", tokenizer="none")
    monkeypatch.setattr("codec_core.convert.source_file.PIECE_BYTES", 5000)
    convert_language_model(source, tmp_path / "y.gguf", quantize="q4_0", tokenizer="none")
    assert (tmp_path / "x.gguf").read_bytes() == (tmp_path / "y.gguf").read_bytes()


def test_another_class_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="quantize: found q5_k, expected q8_0 or q4_k or q4_0"):
        convert_language_model(write_checkpoint(tmp_path / "x.safetensors", "s"), tmp_path / "y.gguf", quantize="q5_k")
