"""moshi.cpp's codes, sound and stages, bit for bit; full-size synthetic model, 32 levels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from codec_core import CodecModel
from codec_core._ext import Kernels
from codec_core.convert import convert_model
from codec_core.difference import compare_codes, compare_sound, compare_steps

from .vectors import SIGNALS, WITH_TAIL, signal, vectors

LEVELS = 32
STAGES_FRAMES = 2
ALL_ISAS = ["scalar", "avx2", "avx512"]

parametrize_signals = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "speech30s" else ()) for name in SIGNALS]
)


@parametrize_signals
def test_encoding_gives_the_published_codes(ggml_model: CodecModel, name: str):
    """30 s of speech is three times the attention's reach: the ring wraps at 10 s."""
    assert compare_codes(vectors(name)["ggml_codes"], ggml_model.encoder(LEVELS).push(signal(name))) is None


@pytest.mark.parametrize("name", WITH_TAIL)
def test_flush_gives_the_padded_last_frame(ggml_model: CodecModel, name: str):
    session = ggml_model.encoder(LEVELS)
    codes = np.concatenate([session.push(signal(name)), session.flush()], axis=1)
    assert compare_codes(vectors(name)["ggml_codes_flushed"], codes) is None


@parametrize_signals
def test_decoding_gives_the_published_bits(ggml_model: CodecModel, name: str):
    golden = vectors(name)
    pcm = ggml_model.decoder(LEVELS).push(golden["ggml_codes"])
    assert compare_sound(golden["ggml_pcm"], pcm, ggml_model.info.frame_samples) is None


@pytest.mark.slow
def test_the_corrected_mask(full_model_path: Path):
    golden = vectors("speech30s")
    expected = golden["ggml-causal_codes"]
    frames = expected.shape[1]
    model = CodecModel.open(full_model_path, numerics="ggml-causal")
    assert compare_codes(expected, model.encoder(LEVELS).push(signal("speech30s")[: frames * 1920])) is None
    differing = (expected != golden["ggml_codes"][:, :frames]).any(axis=0)
    assert np.flatnonzero(differing)[0] == 126, "the masks part once the ring has wrapped"


@pytest.fixture(scope="module", params=ALL_ISAS)
def stages(request: pytest.FixtureRequest, full_model_path: Path) -> dict[str, np.ndarray]:
    """[channels, steps] of both frames, by stage name."""
    if request.param not in Kernels.usable_isas():
        pytest.skip(f"this machine has no {request.param}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MIMI_ISA", request.param)
        model = CodecModel.open(full_model_path, numerics="ggml")
    assert model.info.isa == request.param
    parts: dict[str, list[np.ndarray]] = {}
    encoder, decoder = model.encoder(LEVELS), model.decoder(LEVELS)
    for frame in range(STAGES_FRAMES):
        part = signal("tone440")[frame * 1920 : (frame + 1) * 1920]
        encoder.encode(part, lambda name, values: parts.setdefault(name, []).append(values[0].T.copy()))
        codes = vectors("tone440")["ggml_codes"][:, frame]
        decoder.decode(codes, lambda name, values: parts.setdefault(name, []).append(values[0].T.copy()))
    return {name: np.concatenate(values, axis=1) for name, values in parts.items()}


def test_every_stage_matches(stages: dict[str, np.ndarray]):
    expected = vectors("stages_ggml_tone440")
    assert sorted(stages) == sorted(expected)
    differences = [compare_steps(name, expected[name], values, 0) for name, values in stages.items()]
    assert [str(difference) for difference in differences if difference] == []


@pytest.mark.parametrize("isa", ALL_ISAS)
def test_gelu_table(isa: str):
    """Every half between -10 and 10 goes through the published table; NaN stays NaN."""
    if isa not in Kernels.usable_isas():
        pytest.skip(f"this machine has no {isa}")
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    expected = vectors("gelu_f16_table")["table"].view(np.float16).astype(np.float32)
    expected = np.where(halves <= -10, np.float32(0), np.where(halves >= 10, halves, expected))
    found = np.asarray(Kernels(isa, "ggml").gelu(halves))
    numbers = ~np.isnan(halves)
    assert np.array_equal(found[numbers].view(np.uint32), expected[numbers].view(np.uint32))
    assert np.isnan(found[~numbers]).all()


@pytest.mark.slow
def test_the_raw_form_that_moshi_cpp_reads(full_model_path: Path, tmp_path: Path):
    """No geometry, short tensor names, and `ggml` without being told: the same codes and bits."""
    path = tmp_path / "raw.gguf"
    convert_model(full_model_path, path, form="raw")
    model = CodecModel.open(path)
    golden = vectors("tone440")
    assert model.info.numerics == "ggml"
    assert compare_codes(golden["ggml_codes"], model.encoder(LEVELS).push(signal("tone440"))) is None
    assert compare_sound(golden["ggml_pcm"], model.decoder(LEVELS).push(golden["ggml_codes"]), 1920) is None
