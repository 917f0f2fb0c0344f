"""``python -m server``: the same as ``mimi serve``."""

import typer

from server.command import command

if __name__ == "__main__":
    typer.run(command)
