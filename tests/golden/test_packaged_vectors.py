"""What the package carries is what the golden vectors say, and little enough."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from codec_core.verify.vectors import PACKAGED

from . import packaged_vectors

Files = dict[str, tuple[dict[str, np.ndarray], np.ndarray | None]]
MOST_BYTES = 4_000_000


@pytest.fixture(scope="module")
def built(full_model_path: Path) -> Files:
    return packaged_vectors.build(full_model_path)


def test_they_are_cut_from_the_golden_vectors(built: Files):
    """Where a pinned digest differs, an order of sums has changed: docs/numerics.md must say so, and other machines agree."""
    for name, (arrays, pcm) in built.items():
        path = PACKAGED / f"{name}.npz"
        with np.load(path) as file:
            assert sorted(file) == sorted(arrays), name
            for key in arrays:
                assert np.array_equal(file[key], arrays[key]), f"{name}: {key}"
        if pcm is not None:
            wav = path.parent / "signals" / f"{path.stem}.wav"
            assert np.array_equal(soundfile.read(wav, dtype="int16")[0], pcm)


def test_there_are_no_others(built: Files):
    packaged = {str(path.relative_to(PACKAGED).with_suffix("")) for path in PACKAGED.rglob("*.npz")}
    assert packaged == set(built)


def test_they_are_small():
    assert sum(path.stat().st_size for path in PACKAGED.rglob("*") if path.is_file()) < MOST_BYTES
