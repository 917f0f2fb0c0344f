"""The proof that an embedded tokenizer is the ``.model``'s: it finds what differs."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from codec_core.convert import tokenizer_source
from codec_core.convert.tokenizer_source import read_tokenizer_source, require_same
from codec_core.errors import CheckpointError, ModelAccessError
from codec_core.sentencepiece_model import bytes_field, parse_model, varint_field
from tests.lm_sources import train_tokenizer


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_tokenizer(tmp_path_factory.mktemp("model") / "x.model", 380, byte_fallback=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"charsmap": b""}, "x: tokens of"),
        ({"model_type": "bpe"}, "x: tokens of"),
        ({"add_dummy_prefix": False}, "x: tokens of"),
        ({"remove_extra_whitespaces": False}, "x: tokens of"),
        ({"scores": lambda scores: [*scores[:-1], scores[-1] - 1]}, "x: piece 379: found"),
        ({"types": lambda types: [4 if kind == 1 else kind for kind in types]}, "x: tokens of"),
        ({"pieces": lambda pieces: [*pieces[:-1], "other"]}, "x: piece 379: found .*, expected .* as sentencepiece has it"),
        ({"unknown_surface": "?"}, "x: text of"),
    ],
)
def test_a_tokenizer_that_differs(changes: dict[str, Any], message: str, tmp_path: Path, path: Path) -> None:
    if "unknown_surface" in changes:
        path = train_tokenizer(tmp_path / "plain.model")
    data = path.read_bytes()
    model = parse_model(data, error=CheckpointError, subject="x")
    require_same(data, model, "x")
    replaced = {name: change(getattr(model, name)) if callable(change) else change for name, change in changes.items()}
    with pytest.raises(CheckpointError, match=message):
        require_same(data, dataclasses.replace(model, **replaced), "x")


def test_files_that_are_no_model(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "x.model"
    with pytest.raises(ModelAccessError):
        read_tokenizer_source(broken)
    broken.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(CheckpointError, match=r"x\.model"):
        read_tokenizer_source(broken)
    unknown = bytes_field(1, bytes_field(1, b"<unk>") + varint_field(3, 2))
    broken.write_bytes(unknown + bytes_field(1, bytes_field(1, b"a")) * 2)
    with pytest.raises(CheckpointError, match="'a' again at index 2"):
        read_tokenizer_source(broken)
    monkeypatch.setattr(tokenizer_source, "MODEL_CAP_BYTES", 100)
    with pytest.raises(CheckpointError, match="expected at most 100"):
        read_tokenizer_source(path)
