from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from codec_core import _ext
from codec_core.convert import convert_model
from codec_core.errors import OutputExistsError, SettingError
from codec_core.synth import PRESETS, deep_preset, write_synthetic
from codec_core.synth_tensors import plan_tensors

SHA256 = {
    "full": "913842471bd2cadcf3ca31dc0d04f70ecae9c40218c9eeaf92db4830539bc91b",
    "mini": "c204341f23f74944a9112a9e7cdf543c4ac64e2b504fd08f061ee7abf1d9b9bd",
    "tiny": "d6a64892d827499423884cb158627b35d02e83a3ff4619978c602ebb648ecf8f",
    "deep": "c80549de5b06e1f7f128eca85df453dbd80bc1bed0b4b390e42ae370debc9633",
}


def splitmix_value(name: str, index: int) -> float:
    """The generator's definition in plain integers."""
    mask = (1 << 64) - 1
    state = 0xCBF29CE484222325
    for byte in name.encode():
        state = (state ^ byte) * 0x100000001B3 & mask
    z = (state + (index + 1) * 0x9E3779B97F4A7C15) & mask
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
    return (((z ^ z >> 31) >> 40) - (1 << 23)) / (1 << 23)


@pytest.mark.parametrize("preset", list(PRESETS))
def test_a_preset_has_the_same_bytes_everywhere(preset: str, tmp_path: Path) -> None:
    path = tmp_path / "synth.safetensors"
    size = write_synthetic(path, preset)
    assert size == path.stat().st_size
    with path.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == SHA256[preset]


def test_values_follow_the_definition(tiny_checkpoint: Path) -> None:
    tensors = load_file(tiny_checkpoint)
    name = "encoder_transformer.transformer.layers.1.norm1.weight"
    expected = [np.float32(np.float32(splitmix_value(name, i)) * np.float32(0.2)) + np.float32(1) for i in range(16)]
    assert tensors[name].tolist() == expected
    usage = tensors["quantizer.rvq_first.vq.layers.0._codebook.cluster_usage"]
    assert usage[5] == np.float32(1e-7)
    assert usage.min() == usage[5]


def test_a_run_of_values_does_not_depend_on_where_it_starts() -> None:
    for name, tensor in plan_tensors(PRESETS["tiny"]).items():
        whole = tensor.values(0, tensor.elements)
        half = tensor.elements // 8 * 4
        parts = np.concatenate([tensor.values(0, half), tensor.values(half, tensor.elements - half)])
        assert np.array_equal(whole, parts), name
        assert whole.dtype == np.float32


def test_only_the_small_presets_carry_their_geometry(tiny_checkpoint: Path) -> None:
    text = tiny_checkpoint.read_bytes()
    header = json.loads(text[8 : 8 + int.from_bytes(text[:8], "little")])
    geometry = json.loads(header["__metadata__"]["geometry"])
    assert geometry["transformer"] == {
        "d_model": 16,
        "num_heads": 2,
        "num_layers": 2,
        "dim_feedforward": 32,
        "context": 8,
        "max_period": 10000,
    }
    assert geometry["quantizer"] == {"n_q": 32, "n_q_semantic": 1, "bins": 32, "codebook_dim": 8}


def test_a_deep_model_has_the_sizes_asked_for(tmp_path: Path) -> None:
    preset = deep_preset(layers=160, dim=16, heads=2, context_steps=4)
    assert (preset.mlp_width, preset.context_steps) == (64, 4)
    assert deep_preset() == PRESETS["deep"]
    write_synthetic(tmp_path / "deep.safetensors", preset)
    convert_model(tmp_path / "deep.safetensors", tmp_path / "deep.gguf")
    found = _ext.inspect_model(str(tmp_path / "deep.gguf"))["geometry"]["encoder_transformer"]
    sizes = {"layers": 160, "dim": 16, "heads": 2, "mlp_width": 64, "context_steps": 4}
    assert {name: found[name] for name in sizes} == sizes


@pytest.mark.parametrize("sizes", [{"layers": 0}, {"dim": 30}, {"heads": 3}, {"mlp_width": -1}, {"context_steps": 0}])
def test_sizes_no_model_has(sizes: dict[str, int]) -> None:
    with pytest.raises(SettingError):
        deep_preset(**sizes)


def test_refusals(tiny_checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="preset: found huge, expected full or mini or tiny or deep"):
        write_synthetic(tmp_path / "x.safetensors", "huge")
    before = tiny_checkpoint.read_bytes()
    with pytest.raises(OutputExistsError):
        write_synthetic(tiny_checkpoint, "tiny")
    assert tiny_checkpoint.read_bytes() == before


def test_progress_ends_at_the_size(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    size = write_synthetic(tmp_path / "x.safetensors", "tiny", progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (size, size)
    assert seen == sorted(seen)
