"""Opening models, and the batched calls."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from codec_core import CodecModel
from codec_core.errors import (
    InputShapeError,
    InputTypeError,
    ModelAccessError,
    ModelFormatError,
    SettingError,
)


def test_info_of_the_default_model():
    info = CodecModel.open("default").info
    assert (info.name, info.weight_class, info.numerics) == ("mimi-mini", "f16", "kyutai")
    assert (info.sample_rate_hz, info.frame_samples, info.frame_rate_hz) == (24000, 1920, 12.5)
    assert (info.levels, info.default_levels, info.codebook_entries) == (32, 32, 1024)
    assert info.sha256 == hashlib.sha256(Path(info.path).read_bytes()).hexdigest()
    assert info.threads == 1


def test_a_session_holds_what_info_says(tiny_model: CodecModel):
    assert tiny_model.encoder().state_bytes == tiny_model.info.encoder_state_bytes
    assert tiny_model.decoder().state_bytes == tiny_model.info.decoder_state_bytes


def test_a_session_of_the_full_size_model_takes_a_few_megabytes(full_model: CodecModel):
    """8 layers of 252 keys and values of 512 floats in each direction, and the conv histories twice."""
    ring_bytes = 8 * 2 * 252 * 512 * 4
    assert ring_bytes < full_model.info.encoder_state_bytes < ring_bytes + 200_000
    assert ring_bytes < full_model.info.decoder_state_bytes < ring_bytes + 200_000


@pytest.mark.parametrize("name", ["no-such-model", "", "Default"])
def test_an_unknown_name_lists_the_embedded_models(name: str):
    with pytest.raises(ModelAccessError, match="default"):
        CodecModel.open(name)


@pytest.mark.parametrize("path", ["/no/such/file.gguf", "missing.gguf"])
def test_a_missing_file_is_named(path: str):
    with pytest.raises(ModelAccessError, match="gguf"):
        CodecModel.open(path)


def test_a_directory_is_refused(tmp_path: Path):
    with pytest.raises(ModelAccessError):
        CodecModel.open(tmp_path / ".")


def test_a_file_that_is_no_gguf_is_refused(tmp_path: Path):
    path = tmp_path / "page.gguf"
    path.write_text("<!DOCTYPE html><html>not found</html>")
    with pytest.raises(ModelFormatError):
        CodecModel.open(path)


def test_a_name_beside_a_file_of_that_name(tmp_path: Path, tiny_model_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").symlink_to(tiny_model_path)
    assert CodecModel.open("mine").info.levels == 32


@pytest.mark.parametrize("numerics", ["torch", "KYUTAI", "kyutai "])
def test_unknown_numerics_are_refused(tiny_model_path: Path, numerics: str):
    with pytest.raises(SettingError, match="kyutai, ggml or ggml-causal"):
        CodecModel.open(tiny_model_path, numerics=numerics)


@pytest.mark.parametrize("threads", [0, -3, 10**9])
def test_thread_counts_outside_the_limits_are_refused(tiny_model_path: Path, threads: int):
    with pytest.raises(SettingError, match="threads"):
        CodecModel.open(tiny_model_path, threads=threads)


def test_threads_come_from_the_environment(tiny_model_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MIMI_THREADS", "3")
    assert CodecModel.open(tiny_model_path).info.threads == 3
    monkeypatch.setenv("MIMI_THREADS", "many")
    with pytest.raises(SettingError, match="many"):
        CodecModel.open(tiny_model_path)


def test_batches_of_the_wrong_shape_are_refused(tiny_model: CodecModel):
    encoders = [tiny_model.encoder(8), tiny_model.encoder(8)]
    decoders = [tiny_model.decoder(8), tiny_model.decoder(8)]
    for shape in ((1920,), (1, 1920), (3, 1920), (2, 1919), (2, 1920, 1)):
        with pytest.raises(InputShapeError):
            tiny_model.encode_batch(encoders, np.zeros(shape, np.float32))
    for shape in ((8,), (1, 8), (2, 7), (2, 9)):
        with pytest.raises(InputShapeError):
            tiny_model.decode_batch(decoders, np.zeros(shape, np.int32))
    with pytest.raises(InputShapeError):
        tiny_model.encode_batch([], np.zeros((0, 1920), np.float32))


def test_batches_of_unequal_sessions_are_refused(tiny_model: CodecModel, tiny_model_path: Path):
    frames = np.zeros((2, 1920), np.float32)
    with pytest.raises(SettingError, match="levels of session 1"):
        tiny_model.encode_batch([tiny_model.encoder(8), tiny_model.encoder(4)], frames)
    other = CodecModel.open(tiny_model_path)
    with pytest.raises(SettingError, match="session 1: found one of model 'mimi-synth-tiny'"):
        tiny_model.encode_batch([tiny_model.encoder(8), other.encoder(8)], frames)
    with pytest.raises(SettingError, match="session 0"):
        tiny_model.encode_batch([other.encoder(8), other.encoder(8)], frames)


@pytest.mark.parametrize("stranger", [None, 1, "session"])
def test_batches_of_what_is_no_session_are_refused(tiny_model: CodecModel, stranger: object):
    with pytest.raises(InputTypeError, match=r"session 0.*EncoderSession"):
        tiny_model.encode_batch([stranger], np.zeros((1, 1920), np.float32))  # type: ignore[list-item]


def test_batches_of_the_wrong_direction_are_refused(tiny_model: CodecModel):
    with pytest.raises(InputTypeError, match="found DecoderSession, expected EncoderSession"):
        tiny_model.encode_batch([tiny_model.decoder(8)], np.zeros((1, 1920), np.float32))  # type: ignore[list-item]
    with pytest.raises(InputTypeError, match="found EncoderSession, expected DecoderSession"):
        tiny_model.decode_batch([tiny_model.encoder(8)], np.zeros((1, 8), np.int32))  # type: ignore[list-item]


def test_a_refused_file_is_named(tmp_path: Path):
    path = tmp_path / "page.gguf"
    path.write_bytes(b"GGUF" + bytes(2))
    with pytest.raises(ModelFormatError, match=r"page\.gguf"):
        CodecModel.open(path)


def test_a_model_says_what_it_is(tiny_model: CodecModel):
    assert repr(tiny_model).startswith("<CodecModel mimi-synth-tiny: f32, kyutai numerics, 32 levels, ")
