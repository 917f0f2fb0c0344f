"""How commands speak: errors and warnings on standard error, results on standard output, progress on a terminal."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, TextIO

import typer

from codec_core.errors import CodecError

if TYPE_CHECKING:
    from rich.console import Console

REMEDIES: Final = {
    "output_exists": "--force replaces it",
    "internal": "please report this as a bug",
}
"""What a person at the command line can do, by error code; most messages say it themselves."""

READER_LEFT: Final = 141
"""Exit status where the reader of standard output left before all was written: what a shell reports after SIGPIPE."""
_PIPE_COLUMNS: Final = 10_000

Progress = Callable[[int, int], None]
"""``progress(done, total)``."""


def error_line(error: CodecError) -> str:
    """Return ``error[code]: message``, with the remedy where there is one; always a single line."""
    line = f"error[{error.code}]: {error}"
    if error.code in REMEDIES:
        line += f" ({REMEDIES[error.code]})"
    return printable(line)


def printable(text: str) -> str:
    """Return a text of any origin as one line a terminal only shows, and never obeys."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def print_error(error: CodecError) -> None:
    """Write an error to standard error."""
    typer.secho(error_line(error), fg="red", err=True)


def print_warning(text: str) -> None:
    """Write a warning to standard error."""
    typer.secho(f"warning: {printable(text)}", fg="yellow", err=True)


def print_json(fields: dict[str, Any]) -> None:
    """Write an object to standard output as JSON."""
    typer.echo(json.dumps(fields, indent=2))


class PipedOutput(io.TextIOWrapper):
    """Standard output to a pipe whose reader may leave, as ``head`` does: the command then ends quietly.

    Raises ``SystemExit``, so that what is being written is cleaned up, and nothing takes it for a failure to report.
    """

    def write(self, text: str) -> int:
        """Write, or end the command."""
        with self._ending():
            return super().write(text)

    def flush(self) -> None:
        """Flush, or end the command."""
        with self._ending():
            super().flush()

    @contextlib.contextmanager
    def _ending(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError as cause:
            # What is still buffered must go somewhere when the interpreter ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            raise SystemExit(READER_LEFT) from cause


def let_reader_leave() -> None:
    """Replace this process's standard output by a :class:`PipedOutput`, unless it is a terminal or replaced already."""
    output = sys.stdout
    if output is sys.__stdout__ and isinstance(output, io.TextIOWrapper) and not output.isatty():
        sys.stdout = PipedOutput(output.buffer, encoding=output.encoding, errors=output.errors)


class _TrimmedLines:
    """A text stream that drops the blanks at the ends of lines, which a table leaves. Takes whole lines only."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write("\n".join(line.rstrip(" ") for line in text.split("\n")))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def result_console(*, quiet: bool = False) -> Console:
    """Return a console for results on standard output. Elsewhere than on a terminal no line is wrapped or ends in blanks."""
    # rich is slow to import, and short commands do not need it.
    from rich.console import Console  # noqa: PLC0415

    console = Console(quiet=quiet, highlight=False)
    if not console.is_terminal:
        console.file = _TrimmedLines(sys.stdout)  # type: ignore[assignment]
        console.width = _PIPE_COLUMNS
    return console


def human_bytes(size: float) -> str:
    """Return a size in the unit that suits it."""
    for unit in ("B", "KB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


@contextlib.contextmanager
def progress_bar(label: str) -> Iterator[Progress]:
    """Show a progress bar while the context lasts, on a terminal only; nothing of it stays."""
    # rich is slow to import, and short commands do not need it.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415
    from rich.progress import Progress as Bar  # noqa: PLC0415

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=max(total, done))


@contextlib.contextmanager
def announced_progress(text: str) -> Iterator[Progress]:
    """Say on standard error what is being done, and show a progress bar while it is."""
    typer.echo(printable(text), err=True)
    with progress_bar(text.partition(" ")[0]) as progress:
        yield progress
