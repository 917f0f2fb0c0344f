"""Language models of every weight class: batches, threads and instruction sets leave every bit as it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from codec_core._ext import Kernels
from codec_core.convert.lm_quantise import LM_QUANTISATIONS
from codec_core.language_model import LanguageModel
from codec_core.language_session import Sampling
from codec_core.synth_lm_file import moshi_config, write_synthetic_lm

STEPS = 3


@pytest.fixture(scope="module", params=LM_QUANTISATIONS)
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Moshiko in miniature; products of the temporal transformer are large enough to be shared out."""
    file = tmp_path_factory.mktemp("lm") / f"{request.param}.gguf"
    config = moshi_config(layers=1, dim=1024, depformer_layers=1, depformer_dim=256, card=256, text_card=512)
    write_synthetic_lm(file, config, request.param)
    return file


def stages(model: LanguageModel, lanes: int, user: np.ndarray) -> list[list[bytes]]:
    """Everything that each lane computes; lane i is fed user[i]."""
    sessions = [model.session(Sampling(seed=lane)) for lane in range(lanes)]
    seen: list[list[bytes]] = [[] for _ in sessions]

    def observe(_name: str, values: np.ndarray) -> None:
        for lane, row in enumerate(values):
            seen[lane].append(row.tobytes())

    for step in range(STEPS):
        model.step_batch(sessions, user[:lanes, step], observer=observe)
    return seen


@pytest.fixture
def user(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 256, (7, STEPS, 8))


def test_threads_and_batches_do_not_show(path: Path, user: np.ndarray) -> None:
    alone = stages(LanguageModel.open(path), 1, user)
    together = stages(LanguageModel.open(path, threads=3), 7, user)
    assert together[0] == alone[0]
    assert together[1] != alone[0]


@pytest.mark.parametrize("isa", ["avx2", "avx512", "avx512_vnni"])
def test_instruction_sets_agree(path: Path, user: np.ndarray, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if isa not in Kernels.usable_isas():
        pytest.skip(f"this machine has no {isa}")
    monkeypatch.setenv("MIMI_ISA", "scalar")
    plain = stages(LanguageModel.open(path), 1, user[:, :1].repeat(STEPS, axis=1))
    monkeypatch.setenv("MIMI_ISA", isa)
    model = LanguageModel.open(path)
    assert model.info.isa == isa
    assert stages(model, 1, user[:, :1].repeat(STEPS, axis=1)) == plain
