"""Every stage of the first two frames of tone440 against Kyutai's, so that a difference names its stage."""

from __future__ import annotations

import numpy as np
import pytest

from codec_core import CodecModel

from .vectors import relative_rms, signal, vectors

LARGEST_RELATIVE_RMS = 1e-4
FRAMES = 2


@pytest.fixture(scope="module")
def stages(full_model: CodecModel) -> dict[str, np.ndarray]:
    """[channels, steps] of both frames, by stage name."""
    parts: dict[str, list[np.ndarray]] = {}

    def observe(name: str, values: np.ndarray) -> None:
        parts.setdefault(name, []).append(values[0].T)

    frames = signal("tone440").reshape(-1)[: FRAMES * 1920].reshape(FRAMES, 1920)
    codes = vectors("tone440")["kyutai_codes"]
    encoder, decoder = full_model.encoder(32), full_model.decoder(32)
    for index in range(FRAMES):
        encoder.encode(frames[index], observe)
        decoder.decode(codes[:, index], observe)
    return {name: np.concatenate(values, axis=1) for name, values in parts.items()}


@pytest.mark.parametrize("name", sorted(vectors("stages_kyutai_tone440")))
def test_stage_matches(stages: dict[str, np.ndarray], name: str):
    expected = vectors("stages_kyutai_tone440")[name]
    assert stages[name].shape == expected.shape
    assert relative_rms(expected, stages[name]) <= LARGEST_RELATIVE_RMS


def test_every_observed_stage_has_a_vector(stages: dict[str, np.ndarray]):
    assert sorted(stages) == sorted(vectors("stages_kyutai_tone440"))
