from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from codec_core import _ext
from codec_core.bench.transformers_form import write_transformers_form
from codec_core.convert import convert_model
from codec_core.errors import CheckpointError


@pytest.fixture
def geometry(tiny_gguf: Path) -> dict:
    return _ext.inspect_model(str(tiny_gguf))["geometry"]


def test_it_is_what_transformers_would_save(tiny_checkpoint: Path, tiny_transformers: Path, geometry: dict, tmp_path: Path):
    write_transformers_form(tiny_checkpoint, geometry, tmp_path)
    written, saved = (load_file(folder / "model.safetensors") for folder in (tmp_path, tiny_transformers))
    assert written.keys() == saved.keys()
    for name, values in saved.items():
        assert np.array_equal(written[name], values), name
        assert written[name].dtype == values.dtype, name


def test_converted_back_it_is_the_same_model(tiny_checkpoint: Path, tiny_gguf: Path, geometry: dict, tmp_path: Path, read_gguf):
    write_transformers_form(tiny_checkpoint, geometry, tmp_path)
    convert_model(tmp_path, tmp_path / "back.gguf")
    assert _ext.inspect_model(str(tmp_path / "back.gguf"))["geometry"] == geometry | {"default_levels": 8}
    (_, theirs), (_, ours) = read_gguf(tmp_path / "back.gguf"), read_gguf(tiny_gguf)
    assert theirs.keys() == ours.keys()
    assert all(np.array_equal(theirs[name].data, ours[name].data) for name in ours)


def test_its_config_says_the_sizes(tiny_checkpoint: Path, geometry: dict, tmp_path: Path):
    write_transformers_form(tiny_checkpoint, geometry, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert (config["hidden_size"], config["num_attention_heads"], config["num_filters"]) == (16, 2, 4)


def test_other_types_are_refused(geometry: dict, tmp_path: Path):
    save_file({"encoder.model.0.conv.conv.weight": np.zeros(4, np.float64)}, tmp_path / "x.safetensors")
    with pytest.raises(CheckpointError, match="F64"):
        write_transformers_form(tmp_path / "x.safetensors", geometry, tmp_path)
