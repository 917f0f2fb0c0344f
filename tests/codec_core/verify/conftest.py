"""A folder of vectors of the tiny model, made by the engine itself: to be right, and then to be spoilt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from codec_core import CodecModel
from codec_core.difference import digest_rows
from codec_core.verify.conformance import observed_stages
from codec_core.verify.vectors import SignalVectors, VectorFolder

FRAMES = 6
LEVELS = 12
NAME = "glide"


@pytest.fixture(params=["kyutai", "ggml"])
def model(request: pytest.FixtureRequest, tiny_model_path: Path) -> CodecModel:
    return CodecModel.open(tiny_model_path, numerics=request.param)


@pytest.fixture
def arrays(model: CodecModel, pcm: np.ndarray) -> dict[str, np.ndarray]:
    """What a signal's file holds; the signal has a tail that fills no frame."""
    samples = (pcm[: FRAMES * 1920 + 500] * 32767).astype(np.int16)
    session, numerics = model.encoder(LEVELS), model.info.numerics
    codes = session.push(samples)
    sound = model.decoder(LEVELS).push(codes)
    return {
        "samples": samples,
        f"{numerics}_codes": codes,
        f"{numerics}_codes_flushed": np.concatenate([codes, session.flush()], axis=1),
        f"{numerics}_pcm": sound,
        f"{numerics}_pcm_digests": digest_rows(sound.reshape(-1, 1920)),
    }


@pytest.fixture
def write_folder(tmp_path: Path) -> Callable[[dict[str, np.ndarray]], VectorFolder]:
    def write(arrays: dict[str, np.ndarray]) -> VectorFolder:
        (tmp_path / "signals").mkdir(exist_ok=True)
        soundfile.write(tmp_path / "signals" / f"{NAME}.wav", arrays["samples"], 24000, subtype="PCM_16")
        np.savez(tmp_path / f"{NAME}.npz", **{name: values for name, values in arrays.items() if name != "samples"})
        return VectorFolder(tmp_path)

    return write


@pytest.fixture
def write_signal(write_folder) -> Callable[[dict[str, np.ndarray]], SignalVectors]:
    return lambda arrays: write_folder(arrays).signals[0]


@pytest.fixture
def stage_arrays(model: CodecModel, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """All stages of two frames; the long ones thinned, with digests of every step."""
    frames = list(observed_stages(model, arrays["samples"], arrays[f"{model.info.numerics}_codes"][:, :2]))
    stored: dict[str, np.ndarray] = {}
    for name in frames[0]:
        values = np.concatenate([stages[name] for stages in frames], axis=1)
        stored[name] = values
        if values.shape[1] > 100:
            stored[name] = values[:, ::60]
            stored[f"{name}.steps"] = np.arange(0, values.shape[1], 60)
            stored[f"{name}.digests"] = digest_rows(values.T)
    return stored
