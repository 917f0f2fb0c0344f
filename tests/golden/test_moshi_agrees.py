"""The embedded default model against Kyutai's own program, here and now, where PyPI's moshi is installed (CONTRIBUTING.md).

The stored vectors are the same comparison for everybody else.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from codec_core import CodecModel

from .vectors import snr_db

torch = pytest.importorskip("torch", reason="wants PyPI's moshi")
pytest.importorskip("moshi", reason="wants PyPI's moshi")
from .moshi_reference import FRAME_SAMPLES, build, whole_frames  # noqa: E402

FRAMES = 60


@pytest.fixture(scope="module")
def theirs(default_model: CodecModel):
    torch.set_num_threads(1)
    return build(Path(default_model.info.path))


@pytest.fixture(scope="module")
def pcm() -> np.ndarray:
    return whole_frames("sample_2")[: FRAMES * FRAME_SAMPLES]


@pytest.fixture(scope="module")
def codes(theirs, pcm: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        return theirs.encode(torch.from_numpy(pcm)[None, None])[0].numpy()


def test_codes(default_model: CodecModel, pcm: np.ndarray, codes: np.ndarray):
    assert (default_model.encoder(32).push(pcm) == codes).mean() >= 0.995


def test_sound_of_equal_codes(default_model: CodecModel, theirs, codes: np.ndarray):
    with torch.no_grad():
        expected = theirs.decode(torch.from_numpy(codes)[None])[0, 0].numpy()
    assert snr_db(expected, default_model.decoder(32).push(codes.astype(np.int32))) >= 100


def test_stored_vectors(codes: np.ndarray):
    with np.load(Path(__file__).parent / "vectors" / "default_model.npz") as stored:
        expected = stored["sample_2_codes"][:, :FRAMES]
    assert (codes == expected).mean() >= 0.995
