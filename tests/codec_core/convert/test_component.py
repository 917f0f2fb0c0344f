from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from codec_core.convert import convert_language_model
from codec_core.convert.component import component_of
from codec_core.errors import CheckpointError, ModelAccessError
from tests.lm_sources import write_checkpoint, write_raw


def test_each_is_told_by_what_it_holds(tiny_checkpoint: Path, tiny_gguf: Path, tiny_transformers: Path, tmp_path: Path) -> None:
    checkpoint, raw = write_checkpoint(tmp_path / "x.safetensors", "s"), write_raw(tmp_path / "raw.gguf", "s")
    convert_language_model(checkpoint, tmp_path / "lm.gguf", tokenizer="none")
    voice = tmp_path / "voice.safetensors"
    save_file({"embeddings": np.zeros((2, 1, 1, 8), "f4"), "cache": np.zeros((1, 17, 4), "i4")}, voice)
    for source, component in (
        (tiny_checkpoint, "mimi"),
        (tiny_gguf, "mimi"),
        (tiny_transformers, "mimi"),
        (checkpoint, "lm"),
        (raw, "lm"),
        (tmp_path / "lm.gguf", "lm"),
        (voice, "voice"),
    ):
        assert component_of(source) == component, source
    (tmp_path / "page").write_bytes(b"<!DOCTYPE html>")
    assert component_of(tmp_path / "page") == "mimi"


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ModelAccessError):
        component_of(tmp_path / "none")
    with pytest.raises(CheckpointError):
        component_of(tmp_path)
    (tmp_path / "x.safetensors").write_bytes(b"\xff" * 8 + b"{}")
    with pytest.raises(CheckpointError):
        component_of(tmp_path / "x.safetensors")
