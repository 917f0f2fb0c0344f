"""SentencePiece's ``.model`` file: its pieces, and what of its settings decides how text becomes ids and back.

The file is one message of Protocol Buffers (``sentencepiece_model.proto``). It is read here without the library, whose own
reader would have to trust it, and written again from what was read, so that a model file need not carry two copies.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any, Final

from codec_core.errors import CodecError
from codec_core.protobuf_wire import Value, bytes_field, fields_of, float_field, varint_field

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""Types of pieces; the numbers are those of ``.model`` files, and of ``tokenizer.ggml.token_type``."""
MODEL_TYPES: Final = ("unigram", "bpe", "word", "char")
"""Algorithms, in the order of their numbers from 1."""
SPACE: Final = "\u2581"
"""Stands for a space in pieces."""

_PIECES, _TRAINER, _NORMALISER, _DENORMALISER = 1, 2, 3, 5
_NAMES: Final = {_TRAINER: "trainer_spec", _NORMALISER: "normalizer_spec", _DENORMALISER: "denormalizer_spec"}
_PIECE, _SCORE, _TYPE = 1, 2, 3
_MODEL_TYPE, _WHITESPACE_AS_SUFFIX, _BYTE_FALLBACK, _UNKNOWN_SURFACE = 3, 24, 35, 44
_ID_FIELDS: Final = {"unknown": (40, 45), "bos": (41, 46), "eos": (42, 47), "padding": (43, 48)}
"""Fields of a special piece's id and of its text."""
_CHARSMAP, _DUMMY_PREFIX, _REMOVE_SPACES, _ESCAPE_SPACES = 2, 3, 4, 5


@dataclass(frozen=True)
class SentencePieceModel:
    """What a ``.model`` file says."""

    pieces: list[str]
    scores: list[float]
    """float32; of the logarithm of a probability, or of a merge's rank."""
    types: list[int]
    model_type: str = "unigram"
    """One of :data:`MODEL_TYPES`."""
    byte_fallback: bool = False
    """Whether what no piece covers becomes pieces of single bytes."""
    unknown_surface: str = " \u2047 "
    """What the unknown piece reads as."""
    charsmap: bytes = b""
    """The normaliser's compiled table; empty: text is taken as it is."""
    add_dummy_prefix: bool = True
    remove_extra_whitespaces: bool = True
    special_ids: dict[str, int] = field(default_factory=dict)
    """Ids of "unknown", "bos", "eos" and "padding", of those it has."""


def parse_model(data: bytes, *, error: type[CodecError], subject: str) -> SentencePieceModel:
    """Read a ``.model`` file.

    Args:
        data: the whole file.
        error: class of the error where it lies.
        subject: what to call the file in errors.

    Raises:
        error: no message; texts that are not UTF-8; or settings that are read nowhere else (whitespace as a suffix, or not
            escaped; a denormaliser): naming them.

    """
    reader = _Reader(error, subject)
    # A message that comes in parts is their sum, as the format has it.
    parts: dict[int, list[bytes]] = {_TRAINER: [], _NORMALISER: [], _DENORMALISER: []}
    for number, value in fields_of(data, error=error, subject=subject):
        if number == _PIECES:
            reader.take_piece(reader.message(value, f"piece {len(reader.pieces)}"))
        elif number in parts:
            parts[number].append(reader.require_bytes(value, _NAMES[number]))
    trainer, normaliser, denormaliser = (reader.message(b"".join(parts[number]), _NAMES[number]) for number in parts)
    reader.take_trainer(trainer)
    reader.take_normaliser(normaliser)
    if denormaliser.get(_CHARSMAP):
        raise error(f"{subject}: denormalizer_spec", "rules", "none")
    if not reader.pieces:
        raise error(subject, "no pieces", "a SentencePiece model")
    return reader.model()


def build_model(model: SentencePieceModel) -> bytes:
    """Write a ``.model`` file that the library reads as the one ``model`` was read from."""
    parts = [
        bytes_field(_PIECES, _piece_message(*piece)) for piece in zip(model.pieces, model.scores, model.types, strict=True)
    ]
    trainer = varint_field(_MODEL_TYPE, MODEL_TYPES.index(model.model_type) + 1)
    trainer += varint_field(_BYTE_FALLBACK, model.byte_fallback)
    trainer += bytes_field(_UNKNOWN_SURFACE, model.unknown_surface.encode())
    for role, (id_field, text_field) in _ID_FIELDS.items():
        place = model.special_ids.get(role, -1)
        trainer += varint_field(id_field, place)
        if place >= 0:
            trainer += bytes_field(text_field, model.pieces[place].encode())
    normaliser = bytes_field(_CHARSMAP, model.charsmap)
    normaliser += varint_field(_DUMMY_PREFIX, model.add_dummy_prefix)
    normaliser += varint_field(_REMOVE_SPACES, model.remove_extra_whitespaces)
    return b"".join([*parts, bytes_field(_TRAINER, trainer), bytes_field(_NORMALISER, normaliser)])


def _piece_message(piece: str, score: float, kind: int) -> bytes:
    return bytes_field(_PIECE, piece.encode()) + float_field(_SCORE, score) + varint_field(_TYPE, kind)


class _Reader:
    """Gathers the fields of one file; a field that comes twice counts as it stands last, as the format has it."""

    def __init__(self, error: type[CodecError], subject: str) -> None:
        self._error = error
        self._subject = subject
        self.pieces: list[str] = []
        self.scores: list[float] = []
        self.types: list[int] = []
        self._settings: dict[str, Any] = {}
        self._special = dict(zip(_ID_FIELDS, ("<unk>", "<s>", "</s>", "<pad>"), strict=True))

    def require_bytes(self, value: Value, name: str) -> bytes:
        if not isinstance(value, bytes):
            raise self._error(f"{self._subject}: {name}", "a number", "a message")
        return value

    def message(self, value: Value, name: str) -> dict[int, Value]:
        message = self.require_bytes(value, name)
        return dict(fields_of(message, error=self._error, subject=f"{self._subject}: {name}"))

    def take_piece(self, fields: dict[int, Value]) -> None:
        name = f"piece {len(self.pieces)}"
        score = fields.get(_SCORE, bytes(4))
        if not isinstance(score, bytes) or len(score) != 4:
            raise self._error(f"{self._subject}: {name}: score", "another type", "a float")
        self.pieces.append(self._text(fields, _PIECE, name, ""))
        self.scores.append(struct.unpack("<f", score)[0])
        self.types.append(self._number(fields, _TYPE, f"{name}: type", NORMAL, range(NORMAL, BYTE + 1)))

    def take_trainer(self, fields: dict[int, Value]) -> None:
        kind = self._number(fields, _MODEL_TYPE, "model_type", 1, range(1, len(MODEL_TYPES) + 1))
        self._require(fields, _WHITESPACE_AS_SUFFIX, "treat_whitespace_as_suffix", False)
        self._settings |= {
            "model_type": MODEL_TYPES[kind - 1],
            "byte_fallback": self._flag(fields, _BYTE_FALLBACK, "byte_fallback", False),
            "unknown_surface": self._text(fields, _UNKNOWN_SURFACE, "unk_surface", " \u2047 "),
        }
        for role, (_, text_field) in _ID_FIELDS.items():
            self._special[role] = self._text(fields, text_field, f"{role} piece", self._special[role]) or self._special[role]

    def take_normaliser(self, fields: dict[int, Value]) -> None:
        charsmap = fields.get(_CHARSMAP, b"")
        if not isinstance(charsmap, bytes):
            raise self._error(f"{self._subject}: precompiled_charsmap", "a number", "bytes")
        self._require(fields, _ESCAPE_SPACES, "escape_whitespaces", True)
        self._settings |= {
            "charsmap": charsmap,
            "add_dummy_prefix": self._flag(fields, _DUMMY_PREFIX, "add_dummy_prefix", True),
            "remove_extra_whitespaces": self._flag(fields, _REMOVE_SPACES, "remove_extra_whitespaces", True),
        }

    def model(self) -> SentencePieceModel:
        """Return what was gathered. A special piece is found by its text, as the library finds it."""
        ids = {role: self.pieces.index(text) for role, text in self._special.items() if text in self.pieces}
        roles = {"unknown": UNKNOWN, "bos": CONTROL, "eos": CONTROL, "padding": CONTROL}
        special = {role: place for role, place in ids.items() if self.types[place] == roles[role]}
        if UNKNOWN in self.types:
            special["unknown"] = self.types.index(UNKNOWN)
        return SentencePieceModel(self.pieces, self.scores, self.types, special_ids=special, **self._settings)

    def _number(self, fields: dict[int, Value], number: int, name: str, default: int, legal: range) -> int:
        value = fields.get(number, default)
        if not isinstance(value, int) or value not in legal:
            found = f"{value}" if isinstance(value, int) else "another type"
            raise self._error(f"{self._subject}: {name}", found, f"{legal.start} .. {legal.stop - 1}")
        return value

    def _flag(self, fields: dict[int, Value], number: int, name: str, default: bool) -> bool:
        return bool(self._number(fields, number, name, int(default), range(2)))

    def _require(self, fields: dict[int, Value], number: int, name: str, expected: bool) -> None:
        if self._flag(fields, number, name, expected) != expected:
            raise self._error(f"{self._subject}: {name}", str(not expected).lower(), str(expected).lower())

    def _text(self, fields: dict[int, Value], number: int, name: str, default: str) -> str:
        value = fields.get(number, default.encode())
        try:
            if isinstance(value, bytes):
                return value.decode("utf-8")
        except UnicodeDecodeError:
            pass
        raise self._error(
            f"{self._subject}: {name}", "bytes that are not UTF-8" if isinstance(value, bytes) else "a number", "text"
        )
