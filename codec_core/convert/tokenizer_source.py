"""A SentencePiece ``.model`` file as the tokenizer of a model file, proven to be the same one.

What is written is rebuilt into a tokenizer again and held against the ``.model`` itself, read by the ``sentencepiece``
library: every piece, and the ids and the text of a collection of strings in which tokenizers have been known to differ.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from codec_core.convert.source_file import SourceFile
from codec_core.errors import CheckpointError, ModelContractError
from codec_core.sentencepiece_model import SentencePieceModel, parse_model
from codec_core.text_tokenizer import TextTokenizer, processor_of
from codec_core.tokenizer_keys import check_tokenizer

MODEL_CAP_BYTES: Final = 64 << 20
"""Longest file that is read. Published ones have less than 1 MB."""

ODD_TEXTS: Final = (
    "",
    " ",
    "   leading, trailing and  double  spaces   ",
    "tabs\tand\nnew lines\r\nand\u00a0no-break\u3000wide\u2009thin spaces",
    "Hello, how are you today? I'm fine, thanks; 3.14159 and 1,000,000!",
    "<system> You are a wise and friendly teacher. <system>",
    "<s> </s> <unk> <pad> <0x41> <0xE2><0x82><0xAC> \u2581\u2581under\u2581scores",
    "na\u00efve caf\u00e9 nai\u0308ve cafe\u0301 \u00c5ngstr\u00f6m \u212bngstro\u0308m",
    "\ufb01 \ufb02 \u2460 \u2167 \u00bd \u33a1 \uff21\uff22\uff23 \uff11\uff12\uff13 \u3392 \u00b2",
    "\u201cquotes\u201d \u2018single\u2019 \u00abguillemets\u00bb dashes \u2013 \u2014 \u2015 \u2026",
    "zero\u200bwidth\u200cjoin\u200der \ufeffmark soft\u00adhyphen \u2060word",
    "\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8 \u4e2d\u6587\u5b57\u7b26 \ud55c\uad6d\uc5b4 \uff8a\uff9d\uff76\uff78",
    "\u0627\u0644\u0639\u0631\u0628\u064a\u0629 \u0e44\u0e17\u0e22",
    "\u05e2\u05d1\u05e8\u05d9\u05ea \u0939\u093f\u0928\u094d\u0926\u0940",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1eb\U0001f1f7 \U0001f44d\U0001f3fd \u2764\ufe0f \U0001d54f \U00020000",
    "controls \x01\x02\x1b[31m\x7f\x85 and \ufffd \ufffe \U0010ffff",
    "a" * 300,
    "\u0301\u0301\u0301 begins with marks",
    "MiXeD cAsE, UPPER, lower, \u0130stanbul, stra\u00dfe, \u03c3\u03c2",
)


@dataclass(frozen=True)
class TokenizerSource:
    """A tokenizer that was read and proven."""

    model: SentencePieceModel
    sha256: str


def read_tokenizer_source(path: Path) -> TokenizerSource:
    """Read and prove a ``.model`` file.

    Raises:
        ModelAccessError: it cannot be read.
        CheckpointError: it is no SentencePiece model, or one whose settings have no place in a model file.
        UnavailableError: the sentencepiece library is not installed.

    """
    with SourceFile(path) as file:
        if file.size_bytes > MODEL_CAP_BYTES:
            raise CheckpointError(str(path), f"{file.size_bytes} bytes", f"at most {MODEL_CAP_BYTES}")
        data = file.read(0, file.size_bytes)
    model = parse_model(data, error=CheckpointError, subject=str(path))
    try:
        check_tokenizer(model)
    except ModelContractError as cause:
        raise CheckpointError(f"{path}: {cause.subject}", cause.found, cause.expected) from cause
    require_same(data, model, str(path))
    return TokenizerSource(model, hashlib.sha256(data).hexdigest())


def require_same(data: bytes, model: SentencePieceModel, subject: str) -> None:
    """Refuse a ``.model`` whose tokenizer, rebuilt from what was read of it, is another.

    Args:
        data: the ``.model`` file.
        model: what was read of it.
        subject: what to call it in errors.

    Raises:
        CheckpointError: naming the piece or the text in which they differ.

    """
    theirs = processor_of(data, error=CheckpointError, subject=subject)
    ours = TextTokenizer(model)
    if theirs.piece_size() != len(ours):
        raise CheckpointError(f"{subject}: pieces", f"{len(ours)}", f"{theirs.piece_size()}, as sentencepiece reads it")
    for place in range(len(ours)):
        _require_equal(f"{subject}: piece {place}", ours.piece_facts(place), _piece_facts(theirs, place))
    for text in ODD_TEXTS:
        tokens = [int(token) for token in theirs.encode(text)]
        _require_equal(f"{subject}: tokens of {text[:40]!a}", ours.encode(text), tokens)
        _require_equal(f"{subject}: text of {tokens[:12]}", ours.decode(tokens), theirs.decode(tokens))


def _piece_facts(processor: Any, place: int) -> tuple[Any, ...]:
    kinds = (processor.is_unknown, processor.is_control, processor.is_unused, processor.is_byte)
    return processor.id_to_piece(place), processor.get_score(place), tuple(kind(place) for kind in kinds)


def _require_equal(subject: str, ours: Any, theirs: Any) -> None:
    if ours != theirs:
        raise CheckpointError(subject, f"{ours!a}"[:200], f"{f'{theirs!a}'[:200]}, as sentencepiece has it")
