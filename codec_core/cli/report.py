"""How commands speak: errors and warnings on standard error, results on standard output, progress on a terminal."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import typer

from codec_core.errors import CodecError

REMEDIES: Final = {
    "output_exists": "--force replaces it",
    "internal": "please report this as a bug",
}
"""What a person at the command line can do, by error code; most messages say it themselves."""

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
