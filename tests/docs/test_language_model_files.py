"""What docs/model_file.md says of language models, tokenizers and voice prompts, against files that are written."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from codec_core.convert import convert_language_model, convert_voice_prompt
from codec_core.convert.lm_config import LmConfig, checked_config
from codec_core.convert.lm_metadata import config_metadata
from codec_core.gguf_file import GgufFile
from codec_core.synth_lm import LM_CONFIGS
from tests.lm_sources import train_tokenizer, write_checkpoint

DOCS = Path(__file__).parents[2] / "docs"


def keys(page: str, after: str, before: str = "\\Z") -> set[str]:
    """Keys in the first column of the tables of a part of a page; one that begins with a dot shares its neighbour's stem."""
    text = (DOCS / page).read_text()
    part = re.split(before, text[text.index(after) :], maxsplit=1, flags=re.M)[0]
    found: set[str] = set()
    for cell in re.findall(r"^\| (`[^|]*`) \|", part, re.M):
        stem = ""
        for name in re.findall(r"`([^`]+)`", cell):
            stem = stem if name.startswith(".") else name.rpartition(".")[0]
            found.add(stem + name if name.startswith(".") else name)
    return found


def is_listed(key: str, listed: set[str]) -> bool:
    return key in listed or f"{key.rpartition('.')[0]}.*" in listed


def test_keys_of_a_language_model(tmp_path: Path) -> None:
    listed = (
        keys("language_model.md", "## Files", "^## A stream")
        | keys("model_file.md", "## Language models", "^## Text")
        | {"general.name"}
    )
    words = train_tokenizer(tmp_path / "x.model")
    written = set()
    for model in LM_CONFIGS:
        write_checkpoint(tmp_path / "x.safetensors", model)
        convert_language_model(tmp_path / "x.safetensors", tmp_path / "x.gguf", tokenizer=words, force=True)
        written |= {key for key in GgufFile(tmp_path / "x.gguf").metadata if not key.startswith("tokenizer.")}
    extras = {"model_type": "personaplex", "lm_gen_config": {"temp": 1}, "stt_config": {"a": 1}, "model_id": {"sig": "x"}}
    extras["tts_config"] = {"audio_delay": 1.28}
    config = LmConfig(checked_config(LM_CONFIGS["a"] | extras), None, "x")
    written |= {key for key, _ in config_metadata(config)}
    assert not {key for key in written if not is_listed(key, listed)}
    assert not {key for key in listed if key not in written and not key.endswith(".*")}


def test_keys_of_a_tokenizer(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "x.safetensors", "s")
    words = train_tokenizer(tmp_path / "x.model")
    convert_language_model(tmp_path / "x.safetensors", tmp_path / "x.gguf", tokenizer=words)
    written = {key for key in GgufFile(tmp_path / "x.gguf").metadata if key.startswith("tokenizer.")}
    assert keys("model_file.md", "## Text tokenizer", "^## Voice") == written


def test_keys_and_tensors_of_a_voice_prompt(tmp_path: Path) -> None:
    save_file({"embeddings": np.zeros((2, 1, 1, 8), "f4"), "cache": np.zeros((1, 17, 4), "i4")}, tmp_path / "x.safetensors")
    convert_voice_prompt(tmp_path / "x.safetensors", tmp_path / "x.gguf")
    file = GgufFile(tmp_path / "x.gguf")
    assert keys("model_file.md", "## Voice prompts") == set(file.metadata) | set(file.tensors)
