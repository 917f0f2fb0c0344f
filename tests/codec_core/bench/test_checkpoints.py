from __future__ import annotations

from pathlib import Path

import pytest

from codec_core import _ext
from codec_core.bench.checkpoints import same_weights
from codec_core.errors import CheckpointError, SettingError
from codec_core.synth import write_synthetic


def test_a_model_with_its_checkpoint(tiny_gguf: Path, tiny_checkpoint: Path, tmp_path: Path):
    weights = same_weights(str(tiny_gguf), tiny_checkpoint, tmp_path)
    assert (weights.for_kind("mimi"), weights.for_kind("moshi")) == (str(tiny_gguf), str(tiny_checkpoint))
    assert weights.for_kind("rustymimi") == weights.for_kind("moshi")
    assert {path.name for path in Path(weights.for_kind("transformers")).iterdir()} == {"config.json", "model.safetensors"}


@pytest.mark.parametrize("named", ["as the model", "as the checkpoint"])
def test_a_checkpoint_alone(named: str, tiny_gguf: Path, tiny_checkpoint: Path, tmp_path: Path):
    arguments = (str(tiny_checkpoint), None) if named == "as the model" else ("default", tiny_checkpoint)
    weights = same_weights(*arguments, tmp_path)
    assert weights.model.read_bytes() == tiny_gguf.read_bytes()
    assert weights.kyutai == tiny_checkpoint


def test_other_weights_are_refused(tiny_gguf: Path, tmp_path: Path):
    other = tmp_path / "mini.safetensors"
    write_synthetic(other, "mini")
    with pytest.raises(SettingError, match="converted from"):
        same_weights(str(tiny_gguf), other, tmp_path)
    with pytest.raises(SettingError, match="converted from"):
        same_weights(str(tiny_gguf), None, tmp_path)
    (tmp_path / "broken.safetensors").write_bytes(b"nothing")
    with pytest.raises(CheckpointError):
        same_weights("default", tmp_path / "broken.safetensors", tmp_path)


@pytest.mark.slow
def test_without_a_word_the_full_synthetic_model(tmp_path: Path):
    weights = same_weights("default", None, tmp_path)
    assert _ext.inspect_model(str(weights.model))["geometry"]["encoder_transformer"]["dim"] == 512
