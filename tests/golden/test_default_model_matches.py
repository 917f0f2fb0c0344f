"""The embedded default model against Kyutai's own code on the same weights."""

from __future__ import annotations

import numpy as np
import pytest

from codec_core import CodecModel

from .vectors import signal, snr_db, vectors

NAMES = ("speech30s", "sample_2")
LEAST_MATCH = 0.995
LEAST_SNR_DB = 100.0


def _matches(model: CodecModel, name: str) -> np.ndarray:
    """bool [32, frames]: equal to the f32 or the f64 codes; late levels of this model have near-ties."""
    session = model.encoder(32)
    codes = np.concatenate([session.push(signal(name)), session.flush()], axis=1)
    golden = vectors("default_model")
    codes = codes[:, : golden[f"{name}_codes"].shape[1]]
    return (codes == golden[f"{name}_codes"]) | (codes == golden[f"{name}_codes_f64"])


@pytest.mark.parametrize("name", NAMES)
def test_codes_match(default_model: CodecModel, name: str):
    assert _matches(default_model, name).mean() >= LEAST_MATCH


def test_first_eight_levels_match_on_every_frame(default_model: CodecModel):
    assert _matches(default_model, "sample_2")[:8].all()


@pytest.mark.parametrize("name", NAMES)
def test_sound_matches(default_model: CodecModel, name: str):
    golden = vectors("default_model")
    pcm = default_model.decoder(32).push(golden[f"{name}_codes"])
    assert snr_db(golden[f"{name}_pcm"], pcm) >= LEAST_SNR_DB
