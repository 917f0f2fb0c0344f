"""The text tokenizer in a language model's file: ids to text and back.

Ids become text here, as they arrive, without any other package. Text becomes ids by the ``sentencepiece`` library (extra
``lm``), which is handed the model rebuilt from the file's metadata: its normaliser, its lattice and its merges are then the
very same, where a second implementation would have to prove that for every text there is.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from codec_core.errors import CodecError, CodeRangeError, InputTypeError, ModelContractError, UnavailableError
from codec_core.gguf_file import GgufFile
from codec_core.sentencepiece_model import BYTE, CONTROL, SPACE, UNKNOWN, UNUSED, SentencePieceModel, build_model
from codec_core.tokenizer_keys import MODEL_TYPE_KEY, read_tokenizer

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

PAD_TOKEN: Final = 3
"""Nothing is being said."""
END_OF_PAD_TOKEN: Final = 0
"""A word begins next. With :data:`PAD_TOKEN` the only ids that are not printed."""
_REPLACEMENT: Final = "\ufffd"


class TextTokenizer:
    """Pieces with their ids. Immutable; safe to use from any thread."""

    def __init__(self, model: SentencePieceModel, *, algorithm_known: bool = True) -> None:
        """Take a model whose parts fit together.

        Args:
            model: the pieces and settings.
            algorithm_known: whether ``model`` says how text is cut into pieces, rather than only what they read as.

        """
        self.model = model
        self.algorithm_known = algorithm_known
        self._surfaces = [_surface(model, place) for place in range(len(model.pieces))]

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> TextTokenizer:
        """Read the tokenizer of a language model's file.

        Raises:
            ModelAccessError, ModelFormatError, ModelContractError: the file has none, or one whose keys do not fit together.

        """
        tokenizer = cls.from_file(GgufFile(path))
        if tokenizer is None:
            remedy = "a file made by `mimi convert --tokenizer FILE.model`"
            raise ModelContractError(f"{os.fspath(path)}: text tokenizer", "none", remedy)
        return tokenizer

    @classmethod
    def from_file(cls, file: GgufFile) -> TextTokenizer | None:
        """Read the tokenizer of a model file; None where it has none.

        Raises:
            ModelFormatError, ModelContractError: its keys have other types, or do not fit together.

        """
        model = read_tokenizer(file)
        return None if model is None else cls(model, algorithm_known=MODEL_TYPE_KEY in file.metadata)

    def __len__(self) -> int:
        """Return the number of pieces; ids are 0 .. that less one."""
        return len(self.model.pieces)

    def piece_facts(self, place: int) -> tuple[str, float, tuple[bool, ...]]:
        """Return a piece's text and score, and whether it is unknown, control, unused or a byte."""
        kind = self.model.types[place]
        kinds = tuple(kind == other for other in (UNKNOWN, CONTROL, UNUSED, BYTE))
        return self.model.pieces[place], self.model.scores[place], kinds

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without one for its beginning or end.

        Raises:
            UnavailableError: the library is not installed, or the file does not say by which algorithm.
            InputTypeError: a lone surrogate, which is no text.

        """
        try:
            data = text.encode("utf-8")
        except UnicodeEncodeError as cause:
            raise InputTypeError("text", f"a lone surrogate at index {cause.start}", "text that UTF-8 can hold") from cause
        return [int(token) for token in self._processor.encode(data)]

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of ids as the library does: without the space in front, control pieces reading as nothing.

        Raises:
            CodeRangeError: an id outside the pieces.

        """
        parts: list[str] = []
        pending = b""
        skips_space = self.model.add_dummy_prefix or self.model.remove_extra_whitespaces
        for token in tokens:
            surface, kind = self._surface_of(token), self.model.types[token]
            if isinstance(surface, bytes):
                pending += surface
                continue
            parts.append(_text_of(pending))
            pending = b""
            skips_space = skips_space and not any(parts[-2:])
            if skips_space and kind not in (CONTROL, UNKNOWN) and self.model.pieces[token].startswith(SPACE):
                surface = surface[1:]
                skips_space = self.model.remove_extra_whitespaces
            parts.append("" if kind == CONTROL else surface)
        return "".join([*parts, _text_of(pending)])

    def stream(self, unprinted: Iterable[int] = (END_OF_PAD_TOKEN, PAD_TOKEN)) -> TextStream:
        """Return a new stream from ids to text; ids in ``unprinted`` read as nothing."""
        return TextStream(self, unprinted)

    def _surface_of(self, token: int) -> str | bytes:
        if not 0 <= token < len(self._surfaces):
            raise CodeRangeError("text token", f"{token}", f"0 .. {len(self._surfaces) - 1}")
        return self._surfaces[token]

    @functools.cached_property
    def _processor(self) -> SentencePieceProcessor:
        if not self.algorithm_known:
            remedy = "a file made by `mimi convert --tokenizer FILE.model`"
            raise UnavailableError("text to tokens", f"no key '{MODEL_TYPE_KEY}'", remedy)
        return processor_of(build_model(self.model), error=ModelContractError, subject="tokenizer")


class TextStream:
    """Text of one stream of ids, as they arrive: all that can be said for sure by then. Not for several threads at once."""

    def __init__(self, tokenizer: TextTokenizer, unprinted: Iterable[int]) -> None:
        self._tokenizer = tokenizer
        self._unprinted = frozenset(unprinted)
        self._pending = b""

    @property
    def pending(self) -> bytes:
        """Bytes of a letter that is not complete, at most three."""
        return self._pending

    def restore(self, pending: bytes) -> None:
        """Go on where another stream was whose :attr:`pending` this is."""
        self._pending = pending

    def push(self, token: int) -> str:
        """Return what an id adds to the text: often nothing, as for the bytes of a letter that is not complete.

        A word's first piece brings the space in front of it.

        Raises:
            CodeRangeError: an id outside the pieces; nothing has changed.

        """
        if token in self._unprinted:
            return ""
        surface = self._tokenizer._surface_of(token)
        if isinstance(surface, bytes):
            text, self._pending = _complete(self._pending + surface)
            return text
        return self.flush() + surface

    def flush(self) -> str:
        """Return what is left at the end: bytes that became no letter, each as U+FFFD."""
        text, self._pending = _text_of(self._pending), b""
        return text


def processor_of(data: bytes, *, error: type[CodecError], subject: str) -> SentencePieceProcessor:
    """Return the library's reader of a ``.model`` file that :func:`parse_model` accepts.

    Raises:
        UnavailableError: the library is not installed.
        error: it does not take the file.

    """
    try:
        from sentencepiece import SentencePieceProcessor  # noqa: PLC0415
    except ImportError as cause:
        remedy = "the sentencepiece package: pip install 'mimi-server[lm]'"
        raise UnavailableError("text tokenizer", "no sentencepiece", remedy) from cause
    try:
        return SentencePieceProcessor(model_proto=data)
    except (RuntimeError, ValueError, OSError) as cause:
        raise error(subject, f"{str(cause)[:200]!a}", "a model the sentencepiece library takes") from cause


def _surface(model: SentencePieceModel, place: int) -> str | bytes:
    """Return what a piece adds to a text; a piece of a byte, that byte."""
    piece, kind = model.pieces[place], model.types[place]
    if kind == BYTE:
        return bytes([int(piece[3:5], 16)])
    return model.unknown_surface if kind == UNKNOWN else piece.replace(SPACE, " ")


def _text_of(data: bytes) -> str:
    """Read bytes as UTF-8; each that is part of no letter as U+FFFD, as the library has it."""
    text, rest = _complete(data)
    return text + _REPLACEMENT * len(rest)


def _complete(data: bytes) -> tuple[str, bytes]:
    """Return the text of bytes, and those at the end that may yet become a letter."""
    text, position = "", 0
    while position < len(data):
        size, letter = _letter(data[position : position + 4])
        if size == 0:
            break
        text += letter
        position += size
    return text, data[position:]


def _letter(data: bytes) -> tuple[int, str]:
    """Return the first letter and its size; U+FFFD and 1 where there is none; 0 where more bytes are needed to tell."""
    for size in range(1, len(data) + 1):
        try:
            return size, data[:size].decode("utf-8")
        except UnicodeDecodeError as error:
            if error.reason != "unexpected end of data":
                return 1, _REPLACEMENT
    return 0, ""
