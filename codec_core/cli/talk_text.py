"""Where ``mimi talk`` puts text: a file that appears whole or not at all, standard output as it comes, or nowhere."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Final

import typer

from codec_core.atomic_file import atomic_output
from codec_core.errors import UnavailableError
from codec_core.talk import Words
from codec_core.text_tokenizer import END_OF_PAD_TOKEN, PAD_TOKEN

STANDARD_OUTPUT: Final = "-"


class TextSink:
    """Takes what a model writes, and keeps it.

    Args:
        write: puts text down.
        with_times: whether a word a line is written, with its time, instead of running text.
        has_pieces: whether tokens have text; else their ids are written, but for those that say nothing.

    """

    def __init__(self, write: Callable[[str], None], *, with_times: bool, has_pieces: bool) -> None:
        self._write = write
        self._with_times = with_times
        self._has_pieces = has_pieces
        self._words = Words()
        self._parts: list[str] = []
        self.tokens: list[int] = []
        """Every token, silent ones too."""
        self.timed_words: list[tuple[float, str]] = []
        """Words, each with the time of its beginning in seconds."""

    @property
    def text(self) -> str:
        """Everything so far as running text."""
        return "".join(self._parts).strip()

    def take(self, token: int, text: str, at_s: float) -> None:
        """Take the next token, what it adds to the text, and when it was said."""
        self.tokens.append(token)
        if not self._has_pieces:
            text = "" if token in (END_OF_PAD_TOKEN, PAD_TOKEN) else f" {token}"
        self._add(text, at_s)

    def end(self, rest: str) -> None:
        """Take what was left at the end, and finish."""
        self._add(rest, self.timed_words[-1][0] if self.timed_words else 0.0)
        self._tell(list(self._words.flush()))
        if not self._with_times and self.text:
            self._write("\n")

    def _add(self, text: str, at_s: float) -> None:
        if text and not self._with_times:
            self._write(text if self._parts else text.lstrip())
        if text:
            self._parts.append(text)
            self._tell(list(self._words.push(text, at_s)))

    def _tell(self, words: list[tuple[float, str]]) -> None:
        for at_s, word in words:
            self.timed_words.append((round(at_s, 2), word))
            if self._with_times:
                self._write(f"{at_s:.2f}\t{word}\n")


@contextlib.contextmanager
def open_text(target: str | None, *, with_times: bool, has_pieces: bool) -> Iterator[TextSink]:
    """Open the sink for a path, ``-`` or, where there is no target, for nothing.

    Raises:
        UnavailableError: the file cannot be written.

    """
    if target in (None, STANDARD_OUTPUT):
        write: Callable[[str], None] = _nowhere if target is None else _say
        yield TextSink(write, with_times=with_times, has_pieces=has_pieces)
        return
    with (
        atomic_output(str(target), replace=True, error=UnavailableError) as temporary,
        temporary.open("w", encoding="utf-8") as file,
    ):
        yield TextSink(lambda text: (file.write(text), None)[1], with_times=with_times, has_pieces=has_pieces)


def _say(text: str) -> None:
    typer.echo(text, nl=False)


def _nowhere(_: str) -> None:
    pass
