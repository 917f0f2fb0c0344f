"""The same bits on every instruction set this machine has, and for any number of threads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from codec_core import CodecModel
from codec_core._ext import Kernels
from codec_core.convert import convert_model

FRAMES = 6
ALL_ISAS = ["scalar", "avx2", "avx512", "avx512_vnni"]


@pytest.fixture(params=["tiny", "quantised", "default"])
def path(request: pytest.FixtureRequest) -> str:
    return "default" if request.param == "default" else str(request.getfixturevalue(f"{request.param}_model_path"))


def _codes_and_sound(model: CodecModel, pcm: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    codes = model.encoder(32).push(pcm[: FRAMES * 1920])
    return codes, model.decoder(32).push(codes)


@pytest.mark.parametrize("isa", ALL_ISAS)
def test_instruction_sets_agree(path: str, pcm: np.ndarray, monkeypatch: pytest.MonkeyPatch, isa: str):
    if isa not in Kernels.usable_isas():
        pytest.skip(f"this machine has no {isa}")
    best = _codes_and_sound(CodecModel.open(path), pcm)
    monkeypatch.setenv("MIMI_ISA", isa)
    model = CodecModel.open(path)
    assert model.info.isa == isa
    forced = _codes_and_sound(model, pcm)
    assert np.array_equal(forced[0], best[0])
    assert np.array_equal(forced[1].view(np.uint32), best[1].view(np.uint32))


@pytest.mark.parametrize("threads", [2, 3, 5])
def test_thread_counts_agree(path: str, pcm: np.ndarray, threads: int):
    alone = _codes_and_sound(CodecModel.open(path), pcm)
    shared = _codes_and_sound(CodecModel.open(path, threads=threads), pcm)
    assert np.array_equal(shared[0], alone[0])
    assert np.array_equal(shared[1].view(np.uint32), alone[1].view(np.uint32))


@pytest.mark.parametrize("weight_class", ["f32", "q8_0"])
def test_threads_agree_on_the_full_size_model(weight_class: str, full_model_path: Path, tmp_path: Path, pcm: np.ndarray):
    """Its matrices are large enough to be split by columns as well as by outputs."""
    path = full_model_path
    if weight_class == "q8_0":
        path = tmp_path / "q8_0.gguf"
        convert_model(full_model_path, path, quantize="q8_0")
    alone = _codes_and_sound(CodecModel.open(path), pcm)
    shared = _codes_and_sound(CodecModel.open(path, threads=3), pcm)
    assert np.array_equal(shared[0], alone[0])
    assert np.array_equal(shared[1].view(np.uint32), alone[1].view(np.uint32))
