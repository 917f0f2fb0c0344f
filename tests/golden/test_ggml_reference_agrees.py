"""`ggml` numerics on the tiny geometry against the definition in NumPy, bit for bit, past the wrap of its ring of eight."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from codec_core import CodecModel
from codec_core.difference import compare_steps

from .ggml_reference import GgmlMimi

FRAMES = 12
LEVELS = 32


@pytest.mark.parametrize("numerics", ["ggml", "ggml-causal"])
def test_every_stage_of_both_directions(tiny_model_path: Path, pcm: np.ndarray, numerics: str):
    model = CodecModel.open(tiny_model_path, numerics=numerics)
    reference = GgmlMimi(tiny_model_path, causal=numerics == "ggml-causal")
    encoder, decoder = model.encoder(LEVELS), model.decoder(LEVELS)
    all_codes = []
    for frame, samples in enumerate(pcm[: FRAMES * 1920].reshape(FRAMES, 1920)):
        found: dict[str, np.ndarray] = {}
        codes = encoder.encode(samples, lambda name, values, into=found: into.__setitem__(name, values[0].T.copy()))
        sound = decoder.decode(codes, lambda name, values, into=found: into.__setitem__(name, values[0].T.copy()))
        with np.errstate(all="ignore"):
            expected_codes, stages = reference.encode(samples, LEVELS)
            expected_sound, decoder_stages = reference.decode(codes)
        stages |= decoder_stages
        assert sorted(found) == sorted(stages)
        differences = [compare_steps(name, stages[name], found[name], frame) for name in found]
        assert [str(difference) for difference in differences if difference] == []
        assert codes.tolist() == expected_codes, f"frame {frame}"
        assert np.array_equal(sound.view(np.uint32), expected_sound.view(np.uint32))
        all_codes.append(codes)
    assert len(np.unique(all_codes)) > 4, "the signal must exercise the codebooks"


def test_the_masks_differ_once_the_ring_has_wrapped(tiny_model_path: Path, pcm: np.ndarray):
    latents = []
    for numerics in ("ggml", "ggml-causal"):
        session = CodecModel.open(tiny_model_path, numerics=numerics).encoder(1)
        rows: list[np.ndarray] = []
        for samples in pcm[: FRAMES * 1920].reshape(FRAMES, 1920):
            session.encode(samples, lambda name, x, to=rows: to.append(x[0].copy()) if name == "encoder.transformer" else None)
        latents.append(np.array(rows))
    differing = (latents[0] != latents[1]).any(axis=(1, 2))
    assert np.flatnonzero(differing)[0] == 5
