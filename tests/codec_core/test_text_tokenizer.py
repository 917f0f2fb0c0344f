"""Ids and text of the embedded tokenizer are those of the sentencepiece library, for every algorithm and normaliser."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from codec_core.convert.gguf_writer import write_gguf
from codec_core.convert.tokenizer_source import ODD_TEXTS, read_tokenizer_source
from codec_core.errors import CodeRangeError, InputTypeError, ModelContractError, UnavailableError
from codec_core.gguf_file import GgufFile
from codec_core.text_tokenizer import TextTokenizer
from codec_core.tokenizer_keys import MODEL_TYPE_KEY, tokenizer_metadata
from tests.lm_sources import train_tokenizer

KINDS: dict[str, dict[str, Any]] = {
    "unigram": {"model_type": "unigram"},
    "unigram-bytes": {
        "model_type": "unigram",
        "byte_fallback": True,
        "pieces": 400,
        "user_defined_symbols": ["<system>", "ka"],
    },
    "bpe": {"model_type": "bpe", "normalization_rule_name": "nfkc_cf"},
    "bpe-bytes": {"model_type": "bpe", "byte_fallback": True, "pieces": 400, "remove_extra_whitespaces": False},
    "no-prefix": {"add_dummy_prefix": False, "remove_extra_whitespaces": False, "normalization_rule_name": "identity"},
    "word": {"model_type": "word", "pieces": 200},
    "char": {"model_type": "char"},
}
Pair = tuple[TextTokenizer, sentencepiece.SentencePieceProcessor]


def embedded(model: Path) -> TextTokenizer:
    """What a model file that embeds it gives back."""
    path = model.with_suffix(".gguf")
    path.touch()
    write_gguf(path, tokenizer_metadata(read_tokenizer_source(model).model), [], lambda _: None)
    return TextTokenizer.open(path)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Pair]:
    folder = tmp_path_factory.mktemp("tokenizers")
    found = {}
    for kind, options in KINDS.items():
        path = train_tokenizer(folder / f"{kind}.model", **options)
        found[kind] = (embedded(path), sentencepiece.SentencePieceProcessor(model_file=str(path)))
    return found


def letters(rng: np.random.Generator, count: int) -> str:
    """Any letters Unicode has, the usual ones and spaces among them more often."""
    plain, marks, others = [(32, 127), (32, 33), (0x80, 0x500)], [(0x2000, 0x2100), (0xFB00, 0xFFFF)], [(0x3040, 0x9FFF)]
    ranges = [*plain, *marks, *others, (0xAC00, 0xD7A3), (0x10000, 0x10FFFF)]
    picked = [chr(int(rng.integers(*ranges[int(place)]))) for place in rng.integers(0, len(ranges), count)]
    return "".join(letter for letter in picked if not 0xD800 <= ord(letter) < 0xE000)


@pytest.mark.parametrize("kind", KINDS)
def test_ids_and_texts_of_any_text(kind: str, pairs: dict[str, Pair], rng: np.random.Generator) -> None:
    ours, theirs = pairs[kind]
    assert len(ours) == theirs.piece_size()
    for text in [*ODD_TEXTS, *(letters(rng, int(rng.integers(0, 40))) for _ in range(300))]:
        tokens = ours.encode(text)
        assert tokens == list(theirs.encode(text)), repr(text)
        assert ours.decode(tokens) == theirs.decode(tokens), repr(text)


@pytest.mark.parametrize("kind", KINDS)
def test_texts_of_any_ids(kind: str, pairs: dict[str, Pair], rng: np.random.Generator) -> None:
    ours, theirs = pairs[kind]
    for _ in range(400):
        tokens = rng.integers(0, len(ours), int(rng.integers(0, 30))).tolist()
        assert ours.decode(tokens) == theirs.decode(tokens), tokens


@given(st.text(max_size=40))
@settings(max_examples=40, deadline=None)
def test_ids_of_texts_that_are_looked_for(text: str) -> None:
    ours, theirs = _LOOKED_FOR[0]
    assert ours.encode(text) == list(theirs.encode(text))


_LOOKED_FOR: list[Pair] = []


@pytest.fixture(autouse=True)
def _looked_for(pairs: dict[str, Pair]) -> None:
    _LOOKED_FOR[:] = [pairs["unigram-bytes"]]


def test_special_ids(pairs: dict[str, Pair]) -> None:
    for ours, theirs in pairs.values():
        found = (theirs.unk_id(), theirs.bos_id(), theirs.eos_id(), theirs.pad_id())
        assert tuple(ours.model.special_ids[role] for role in ("unknown", "bos", "eos", "padding")) == found == (0, 1, 2, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_text_as_ids_arrive(kind: str, pairs: dict[str, Pair], rng: np.random.Generator) -> None:
    """What is pushed adds up to the pieces' texts; padding and the end of padding say nothing."""
    ours, theirs = pairs[kind]
    for _ in range(50):
        tokens = rng.integers(0, len(ours), 20).tolist()
        stream = ours.stream()
        said = "".join([*(stream.push(token) for token in tokens), stream.flush()])
        spoken = [token for token in tokens if token not in (0, 3)]
        pieces = [theirs.id_to_piece(token).replace("\u2581", " ") for token in spoken]
        if not any(theirs.is_byte(token) for token in spoken):
            assert said == "".join(pieces)
        controls = [token for token in spoken if theirs.is_control(token)]
        if not controls and spoken:
            assert said == " " * (len(said) - len(said.lstrip(" "))) + theirs.decode(spoken).lstrip(" ")


def test_a_letter_of_several_bytes_is_said_when_it_is_whole(pairs: dict[str, Pair]) -> None:
    ours, theirs = pairs["unigram-bytes"]
    stream, euro = ours.stream(), [theirs.piece_to_id(f"<0x{byte:02X}>") for byte in "\u20ac".encode()]
    assert [stream.push(token) for token in euro] == ["", "", "\u20ac"]
    assert [stream.push(token) for token in [*euro[:2], theirs.piece_to_id("<system>")]] == ["", "", "\ufffd\ufffd<system>"]
    assert [stream.push(token) for token in [*euro[:1], 3, 0, *euro[1:]]] == ["", "", "", "", "\u20ac"]
    assert stream.push(euro[2]) == "\ufffd"
    assert (stream.push(euro[0]), stream.flush(), stream.flush()) == ("", "\ufffd", "")


def test_ids_outside_the_pieces(pairs: dict[str, Pair]) -> None:
    ours, _ = pairs["unigram"]
    stream = ours.stream()
    for token in (-1, len(ours)):
        with pytest.raises(CodeRangeError, match=rf"text token: found {token}, expected 0 .. {len(ours) - 1}"):
            stream.push(token)
        with pytest.raises(CodeRangeError):
            ours.decode([5, token])


def test_no_text(pairs: dict[str, Pair]) -> None:
    with pytest.raises(InputTypeError, match="a lone surrogate at index 2"):
        pairs["bpe"][0].encode("ab\ud800")


def test_a_file_of_another_tool_reads_but_does_not_guess(pairs: dict[str, Pair], tmp_path: Path) -> None:
    ours, theirs = pairs["bpe-bytes"]
    keys = [(key, value) for key, value in tokenizer_metadata(ours.model) if not key.startswith("tokenizer.sentencepiece.")]
    (tmp_path / "x.gguf").touch()
    write_gguf(tmp_path / "x.gguf", keys, [], lambda _: None)
    foreign = TextTokenizer.from_file(GgufFile(tmp_path / "x.gguf"))
    assert foreign is not None
    tokens = list(theirs.encode("kalo \u20ac"))
    assert foreign.decode(tokens) == theirs.decode(tokens)
    assert foreign.model.byte_fallback
    with pytest.raises(UnavailableError, match=f"no key '{MODEL_TYPE_KEY}', expected a file made by `mimi convert --tokenizer"):
        foreign.encode("kalo")


def test_a_file_without_one(tmp_path: Path) -> None:
    (tmp_path / "x.gguf").touch()
    write_gguf(tmp_path / "x.gguf", [("general.name", "x")], [], lambda _: None)
    assert TextTokenizer.from_file(GgufFile(tmp_path / "x.gguf")) is None
    with pytest.raises(ModelContractError, match=r"x.gguf: text tokenizer: found none, expected .*--tokenizer"):
        TextTokenizer.open(tmp_path / "x.gguf")


WITHOUT = """
import sys
sys.modules["sentencepiece"] = None
from codec_core.errors import UnavailableError
from codec_core.gguf_file import GgufFile
from codec_core.text_tokenizer import TextTokenizer
tokenizer = TextTokenizer.from_file(GgufFile(sys.argv[1]))
print(repr(tokenizer.decode([5, 6, 7])))
try:
    tokenizer.encode("x")
except UnavailableError as error:
    print(error)
"""


def test_text_comes_without_the_library(pairs: dict[str, Pair], tmp_path: Path) -> None:
    embedded(train_tokenizer(tmp_path / "x.model"))
    command = [sys.executable, "-c", WITHOUT, str(tmp_path / "x.gguf")]
    lines = subprocess.run(command, capture_output=True, check=True, text=True, cwd=tmp_path).stdout.splitlines()
    assert lines[0] == repr(pairs["unigram"][1].decode([5, 6, 7]))
    assert "pip install 'mimi-server[lm]'" in lines[1]
