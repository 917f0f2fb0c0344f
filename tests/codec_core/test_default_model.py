"""The model embedded in the package is what docs/default_model/README.md says."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

import codec_core
from codec_core import CodecModel, _ext
from codec_core.clip import decode_clip, encode_clip
from codec_core.pcm import to_int16

SHA256 = "711d8be6de518ccab3ed5835167841965b9ca087ed4e5fa098e3bf8fb0383a54"
SOURCE_SHA256 = "94627296a9a951d23294f3918dbd3c06991b5ea4e51fda426774c48ce6c722e3"


def test_the_file_is_the_one_that_was_evaluated() -> None:
    path = Path(codec_core.__file__).with_name("models") / "default.gguf"
    with path.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == SHA256
    metadata = _ext.inspect_model(str(path))["metadata"]
    assert metadata["moshi.mimi.source_sha256"] == SOURCE_SHA256


def test_what_it_is() -> None:
    info = CodecModel.open("default").info
    assert (info.name, info.weight_class, info.numerics) == ("mimi-mini", "f16", "kyutai")
    assert (info.levels, info.default_levels, info.codebook_entries) == (32, 32, 1024)
    assert (info.sample_rate_hz, info.frame_samples, info.frame_rate_hz) == (24000, 1920, 12.5)


def test_its_file_is_small() -> None:
    path = Path(CodecModel.open("default").info.path)
    assert path.stat().st_size <= 15_000_000
    tensors = _ext.inspect_model(str(path))["tensors"]
    assert {tensor["type"] for tensor in tensors if tensor["name"].endswith("_codebook.embedding")} == {"f16"}


def test_sound_past_full_scale_is_clamped_not_wrapped() -> None:
    """A square wave as loud as can be comes out louder still."""
    model = CodecModel.open("default")
    loud = np.sign(np.sin(2 * np.pi * 150 / 24_000 * np.arange(1920 * 25))).astype(np.float32)
    pcm = decode_clip(model, encode_clip(model, loud))
    assert np.abs(pcm).max() > 1
    integers = to_int16(pcm)
    assert (np.sign(integers) == np.sign(np.rint(pcm * 32768))).all()
    assert (integers[pcm > 1] == 32767).all()
    assert (integers[pcm < -1] == -32768).all()


def test_silence_stays_nearly_silent() -> None:
    model = CodecModel.open("default")
    pcm = model.decoder().push(model.encoder().push(np.zeros(1920 * 25, np.float32)))
    assert np.abs(pcm).max() < 0.01
