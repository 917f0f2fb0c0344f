"""The stream against the offline definition in float64, on the tiny model, whose ring wraps after four frames."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from codec_core import CodecModel

from .offline_reference import OfflineMimi
from .vectors import relative_rms, snr_db

FRAMES = 40
# A code may differ from float64's only where the two best codewords are this close, relative to their distance.
NEAR_TIE = 1e-4


@pytest.fixture(scope="module")
def offline(tiny_model_path: Path) -> OfflineMimi:
    return OfflineMimi(tiny_model_path)


def test_latents_agree(tiny_model: CodecModel, offline: OfflineMimi, pcm: np.ndarray):
    latents: list[np.ndarray] = []
    session = tiny_model.encoder(1)
    for frame in pcm[: FRAMES * 1920].reshape(FRAMES, 1920):
        session.encode(frame, lambda name, values: latents.append(values[0, 0]) if name == "encoder.downsample" else None)
    assert relative_rms(offline.latent(pcm[: FRAMES * 1920]), np.array(latents).T) < 1e-5


def test_codes_agree(tiny_model: CodecModel, offline: OfflineMimi, pcm: np.ndarray):
    found = tiny_model.encoder(32).push(pcm[: FRAMES * 1920])
    expected, margins = offline.codes(offline.latent(pcm[: FRAMES * 1920]), 32)
    assert len(np.unique(expected)) > 4, "the signal must exercise the codebooks"
    for frame in range(FRAMES):
        tied = np.flatnonzero(margins[:, frame] < NEAR_TIE)
        # Levels after a near-tie of the acoustic half follow from it.
        certain = 32 if not len(tied) else int(tied[0])
        assert np.array_equal(found[:certain, frame], expected[:certain, frame]), f"frame {frame}"


def test_sound_agrees(tiny_model: CodecModel, offline: OfflineMimi, rng: np.random.Generator):
    codes = rng.integers(0, 8, (32, FRAMES))
    assert snr_db(offline.decode(codes), tiny_model.decoder(32).push(codes)) > 90
