"""Latents before quantisation and from codes, against Kyutai's stages of the first two frames of tone440."""

from __future__ import annotations

import numpy as np

from codec_core import CodecModel

from .vectors import relative_rms, signal, vectors

LARGEST_RELATIVE_RMS = 1e-4
FRAMES = 2


def test_latents_before_quantisation(full_model: CodecModel):
    pcm = signal("tone440").reshape(-1)[: FRAMES * 1920]
    codes, latents = full_model.encoder(32).latents(pcm)
    expected = vectors("stages_kyutai_tone440")["encoder.downsample"]
    assert latents.shape == expected.shape
    assert relative_rms(expected, latents) <= LARGEST_RELATIVE_RMS
    assert np.array_equal(codes, vectors("tone440")["kyutai_codes"][:, :FRAMES])


def test_latents_of_codes(full_model: CodecModel):
    latents = full_model.decode_latents(vectors("tone440")["kyutai_codes"][:, :FRAMES])
    expected = vectors("stages_kyutai_tone440")["decoder.latent"]
    assert latents.shape == expected.shape
    assert relative_rms(expected, latents) <= LARGEST_RELATIVE_RMS
