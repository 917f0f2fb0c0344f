"""Tokenizers in model files that lie: each refused by key, found and expected, before the library sees it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codec_core import tokenizer_keys
from codec_core.convert.gguf_writer import write_gguf
from codec_core.errors import ModelContractError, ModelFormatError
from codec_core.gguf_file import GgufFile
from codec_core.sentencepiece_model import SentencePieceModel
from codec_core.text_tokenizer import TextTokenizer
from codec_core.tokenizer_keys import read_tokenizer, tokenizer_metadata

MODEL = SentencePieceModel(
    ["<unk>", "<s>", "</s>", "<pad>", "\u2581ka", "<0x0A>", "lo"],
    [0.0, 0.0, 0.0, 0.0, -1.5, 0.0, -2.25],
    [2, 3, 3, 3, 1, 6, 1],
    byte_fallback=True,
    special_ids={"unknown": 0, "bos": 1, "eos": 2, "padding": 3},
)


def written(path: Path, keys: list[tuple[str, Any]]) -> GgufFile:
    path.touch()
    write_gguf(path, keys, [], lambda _: None)
    return GgufFile(path)


def changed(**changes: Any) -> list[tuple[str, Any]]:
    """The keys of :data:`MODEL` with others in place of some; None leaves one out."""
    keys = dict(tokenizer_metadata(MODEL))
    for name, value in changes.items():
        key = f"tokenizer.{name.replace('__', '.')}"
        keys.pop(key, None)
        if value is not None:
            keys[key] = value
    return list(keys.items())


def test_what_is_written_is_read(tmp_path: Path) -> None:
    assert read_tokenizer(written(tmp_path / "x.gguf", tokenizer_metadata(MODEL))) == MODEL
    other = dataclasses.replace(
        MODEL, model_type="bpe", add_dummy_prefix=False, special_ids={"unknown": 0}, unknown_surface="?"
    )
    assert read_tokenizer(written(tmp_path / "x.gguf", tokenizer_metadata(other))) == other


PIECES = MODEL.pieces
CASES: list[tuple[dict[str, Any], str]] = [
    ({"ggml__tokens": []}, r"'tokenizer.ggml.tokens': found 0 pieces, expected 1 .. "),
    ({"ggml__tokens": PIECES[:-1]}, "'tokenizer.ggml.scores': found 7 elements, expected 6"),
    ({"ggml__tokens": [*PIECES[:-1], ""]}, r"found '' at index 6, expected pieces of one letter or more"),
    ({"ggml__tokens": [*PIECES[:-1], "<s>"]}, "found '<s>' again at index 6, expected every piece once"),
    ({"ggml__tokens": [*PIECES[:5], "<0x0a>", "lo"]}, "found '<0x0a>' of type 6 at index 5, expected '<0x00>'"),
    ({"ggml__scores": None}, "'tokenizer.ggml.scores': found no such key, expected 7, one for each piece"),
    ({"ggml__scores": np.array([0, 0, 0, 0, np.nan, 0, 0], np.float32)}, "found nan at index 4, expected finite values"),
    ({"ggml__token_type": np.array([2, 3, 3, 3, 1, 6], np.int32)}, "'tokenizer.ggml.token_type': found 6 elements, expected 7"),
    ({"ggml__token_type": np.array([2, 3, 3, 3, 7, 6, 1], np.int32)}, r"found 7 at index 4, expected 1 .. 6"),
    ({"ggml__token_type": np.array([2, 3, 3, 3, -1, 6, 1], np.int32)}, r"found -1 at index 4, expected 1 .. 6"),
    ({"ggml__token_type": np.array([1, 3, 3, 3, 1, 6, 1], np.int32)}, "found 0 of type 2, expected one, the unknown piece"),
    ({"ggml__token_type": np.array([2, 2, 3, 3, 1, 6, 1], np.int32)}, "found 2 of type 2, expected one"),
    ({"ggml__bos_token_id": 7}, r"'tokenizer.ggml.bos_token_id': found 7, expected 0 .. 6"),
    ({"ggml__model": "gpt2"}, "'tokenizer.ggml.model': found 'gpt2', expected 'llama'"),
    ({"ggml__model": None}, "'tokenizer.ggml.model': found None, expected 'llama'"),
    ({"sentencepiece__model_type": "wordpiece"}, "'wordpiece', expected unigram or bpe or word or char"),
    ({"ggml__precompiled_charsmap": np.zeros(3, np.uint8)}, "precompiled_charsmap': found 3 bytes, expected at least 4"),
]


@pytest.mark.parametrize(("changes", "message"), CASES)
def test_keys_that_do_not_fit_together(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ModelContractError, match=message):
        TextTokenizer.from_file(written(tmp_path / "x.gguf", changed(**changes)))


@pytest.mark.parametrize(
    "changes",
    [
        {"ggml__tokens": np.zeros(7, np.int32)},
        {"ggml__scores": np.zeros(7, np.int32)},
        {"ggml__token_type": [*"1234567"]},
        {"ggml__bos_token_id": "1"},
        {"ggml__bos_token_id": -1},
        {"ggml__add_space_prefix": 1},
        {"sentencepiece__model_type": 2},
        {"ggml__precompiled_charsmap": np.zeros(8, np.uint32)},
    ],
)
def test_keys_of_another_type(changes: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ModelFormatError, match="key 'tokenizer"):
        read_tokenizer(written(tmp_path / "x.gguf", changed(**changes)))


def test_more_pieces_than_a_tokenizer_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer_keys, "PIECES_CAP", 6)
    with pytest.raises(ModelContractError, match=r"found 7 pieces, expected 1 .. 6"):
        read_tokenizer(written(tmp_path / "x.gguf", changed()))
