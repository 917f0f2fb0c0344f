"""A model whose weights are stored in f16 gives the codes and the samples of the same values stored in f32, bit for bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from codec_core import CodecModel
from codec_core._ext import Kernels
from codec_core.clip import decode_clip, encode_clip
from codec_core.convert import convert_model
from codec_core.synth import write_synthetic
from codec_core.synth_tensors import SynthPreset
from codec_core.window import plan_window

LEVELS = 32
PRESET = SynthPreset("eight-layers", 4, 16, 8, 2, 32, 8, 32, 8)
NUMERICS = ("kyutai", "ggml", "ggml-causal")


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything that may be f16 is."""
    path = tmp_path_factory.mktemp("halves") / "half.gguf"
    write_synthetic(path.with_suffix(".safetensors"), PRESET)
    convert_model(path.with_suffix(".safetensors"), path, dtype="f16", codebooks="f16", matrices="f16")
    return path


@pytest.fixture(scope="module")
def same_in_f32(halves: Path) -> Path:
    path = halves.with_name("wide.gguf")
    convert_model(halves, path, dtype="f32")
    return path


def run(model: CodecModel, pcm: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    codes = encode_clip(model, pcm, LEVELS)
    return codes, decode_clip(model, codes)


@pytest.fixture(params=["scalar", "avx2", "avx512", "avx512_vnni"])
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The instruction set models are opened with."""
    if request.param not in Kernels.usable_isas():
        pytest.skip(f"this machine has no {request.param}")
    monkeypatch.setenv("MIMI_ISA", request.param)
    return request.param


@pytest.mark.parametrize("numerics", NUMERICS)
def test_codes_and_samples(halves: Path, same_in_f32: Path, numerics: str, isa: str, pcm: np.ndarray) -> None:
    narrow, wide = CodecModel.open(halves, numerics), CodecModel.open(same_in_f32, numerics)
    assert narrow.info.isa == wide.info.isa == isa
    codes, samples = run(narrow, pcm)
    same_codes, same_samples = run(wide, pcm)
    assert np.array_equal(codes, same_codes)
    assert np.array_equal(samples, same_samples)


@pytest.mark.parametrize("numerics", NUMERICS)
def test_batches(halves: Path, same_in_f32: Path, numerics: str, rng: np.random.Generator) -> None:
    """So many streams that narrow weights are widened for all of them at once."""
    pcm = 0.2 * rng.standard_normal((3, 40, 1920)).astype(np.float32)
    made = []
    for model in (CodecModel.open(halves, numerics), CodecModel.open(same_in_f32, numerics)):
        encoders, decoders = [[make(LEVELS) for _ in range(40)] for make in (model.encoder, model.decoder)]
        codes = [model.encode_batch(encoders, frame) for frame in pcm]
        made.append((codes, [model.decode_batch(decoders, frame) for frame in codes]))
    assert np.array_equal(made[0][0], made[1][0])
    assert np.array_equal(made[0][1], made[1][1])


@pytest.mark.parametrize("numerics", NUMERICS)
def test_layers_that_are_read_again_and_again(halves: Path, same_in_f32: Path, numerics: str, pcm: np.ndarray) -> None:
    budget = plan_window(halves, 1 << 40, numerics).minimum_bytes
    model = CodecModel.open(halves, numerics, ram_budget_bytes=budget)
    assert model.window_stats is not None
    assert model.info.weights_bytes == plan_window(halves, budget, numerics).memory_bytes
    codes, samples = run(model, pcm)
    same_codes, same_samples = run(CodecModel.open(same_in_f32, numerics), pcm)
    assert np.array_equal(codes, same_codes)
    assert np.array_equal(samples, same_samples)


def test_memory_holds_what_the_file_has(halves: Path, same_in_f32: Path) -> None:
    """Half of nearly all under `kyutai`; `ggml`'s sums want f32, of all but the codebooks."""
    narrow, wide = (
        {name: CodecModel.open(path, name).info.weights_bytes for name in ("kyutai", "ggml")} for path in (halves, same_in_f32)
    )
    codebooks = wide["ggml"] - narrow["ggml"]
    assert codebooks == LEVELS * 32 * 8 * 2
    assert 2 * codebooks < wide["kyutai"] - narrow["kyutai"] < wide["kyutai"] / 2


def test_codewords_are_looked_up_alike(halves: Path, same_in_f32: Path, rng: np.random.Generator) -> None:
    narrow, wide = CodecModel.open(halves), CodecModel.open(same_in_f32)
    for level in (0, 1, LEVELS - 1):
        assert np.array_equal(narrow.codebook(level), wide.codebook(level))
    codes = rng.integers(0, narrow.info.codebook_entries, (LEVELS, 9))
    assert np.array_equal(narrow.decode_latents(codes), wide.decode_latents(codes))
