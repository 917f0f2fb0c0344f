"""The model embedded in the package is what docs/default_model/README.md says."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

import codec_core
from codec_core import CodecModel, _ext

SHA256 = "2aad464fe82bc50635fd657b4e354079d565e4556d1a9b893cce1222262cb181"
SOURCE_SHA256 = "45a46898d6fabf05bf814c32be5d69bb27f1f10215748c6e4f6dd3954894d121"


def test_the_file_is_the_one_that_was_evaluated() -> None:
    path = Path(codec_core.__file__).with_name("models") / "default.gguf"
    with path.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == SHA256
    metadata = _ext.inspect_model(str(path))["metadata"]
    assert metadata["moshi.mimi.source_sha256"] == SOURCE_SHA256


def test_what_it_is() -> None:
    info = CodecModel.open("default").info
    assert (info.name, info.weight_class, info.numerics) == ("mimi-mini", "f32", "kyutai")
    assert (info.levels, info.default_levels, info.codebook_entries) == (32, 32, 1024)
    assert (info.sample_rate_hz, info.frame_samples, info.frame_rate_hz) == (24000, 1920, 12.5)


def test_silence_stays_nearly_silent() -> None:
    model = CodecModel.open("default")
    pcm = model.decoder().push(model.encoder().push(np.zeros(1920 * 25, np.float32)))
    assert np.abs(pcm).max() < 0.01
