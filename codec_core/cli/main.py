"""Entry point of ``mimi``: finds commands, imports only the one that is called, turns errors into one line.

A command is a function with typer annotations, or a ``typer.Typer``. Other packages add theirs through the entry-point group
``mimi.commands``. The line ``mimi --help`` shows for a command is the first line of its module's docstring, which is read
without importing the module.

Exit status: 0 done, 1 failed (one line on standard error says why), 2 wrong usage, 3 done but for some inputs (``mimi
tokenize``), 130 interrupted, 141 the reader of
the output left.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from codec_core.cli.report import announced_progress, let_reader_leave, print_error
from codec_core.errors import CodecError, SettingError, UnavailableError
from codec_core.model_cache import watched

PLUGIN_GROUP: Final = "mimi.commands"
BUILT_IN: Final = (
    "encode",
    "decode",
    "convert",
    "pull",
    "inspect",
    "synth",
    "verify",
    "compare",
    "bench",
    "lm",
    "stream",
    "talk",
    "tokenize",
)


@dataclass(frozen=True)
class _Place:
    """Where a command is defined."""

    name: str
    module: str
    attribute: str

    def summary(self) -> str:
        """Return the first line of the module's docstring, or nothing where that cannot be had."""
        # A broken plug-in must not break the list of commands; calling it says what is wrong.
        with contextlib.suppress(Exception):
            spec = importlib.util.find_spec(self.module)
            if spec is not None and spec.origin is not None:
                tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
                return (ast.get_docstring(tree) or "").partition("\n")[0]
        return ""

    def load(self) -> Any:
        """Import the module and return the command, ready to be invoked."""
        try:
            found = getattr(importlib.import_module(self.module), self.attribute)
        except Exception as cause:
            reason = f"{type(cause).__name__}: {cause}"
            raise UnavailableError(f"command {self.name!r}", reason, f"{self.module}:{self.attribute} to import") from cause
        command_app = found
        if not isinstance(found, typer.Typer):
            command_app = typer.Typer(add_completion=False)
            command_app.command(self.name)(found)
        command = typer.main.get_command(command_app)
        command.name = self.name
        return command


def _places() -> dict[str, _Place]:
    """List the commands: ours in a fixed order, then the plug-ins by name. A plug-in cannot replace one of ours."""
    places = {name: _Place(name, f"codec_core.cli.{name}", "command") for name in BUILT_IN}
    for entry in sorted(entry_points(group=PLUGIN_GROUP), key=lambda entry: entry.name):
        places.setdefault(entry.name, _Place(entry.name, entry.module, entry.attr or "command"))
    return places


class CommandGroup(TyperGroup):
    """The group of all commands. A command's module is imported when the command is called, not when it is listed."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._commands_at = _places()
        self._only_listing = False
        self.commands.update({name: TyperCommand(name=name) for name in self._commands_at})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; while listing, only its name and its one line of help."""
        place = self._commands_at.get(cmd_name)
        if place is None or self._only_listing:
            return super().get_command(ctx, cmd_name)
        return place.load()

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help text without importing any command."""
        with self._listing():
            super().format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Complete command names without importing any command."""
        with self._listing():
            return super().shell_complete(ctx, incomplete)

    @contextlib.contextmanager
    def _listing(self) -> Iterator[None]:
        for name, place in self._commands_at.items():
            self.commands[name].help = place.summary()
        self._only_listing = True
        try:
            yield
        finally:
            self._only_listing = False


app = typer.Typer(
    cls=CommandGroup,
    name="mimi",
    help="Live neural audio codes: an exact, streaming Mimi codec.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from codec_core import __version__  # noqa: PLC0415 - the package knows it; nothing else here needs the package

        typer.echo(f"mimi {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    pass


def run() -> None:
    """Run the command line of this process and exit."""
    let_reader_leave()
    try:
        with watched(announced_progress):
            typer.main.get_command(app).main(prog_name="mimi")
    except CodecError as error:
        print_error(error)
        sys.exit(2 if isinstance(error, SettingError) else 1)
