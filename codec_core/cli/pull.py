"""Fetch published weights, and convert them for use by their name."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from codec_core.catalogue import CatalogueEntry, catalogue_path, read_catalogue
from codec_core.cli.options import JsonOption
from codec_core.cli.report import print_json, print_warning, result_console
from codec_core.errors import SettingError
from codec_core.model_cache import pulled_path


def command(
    name: Annotated[str | None, typer.Argument(help="A name of the catalogue; without it, the first.")] = None,
    *,
    list_all: Annotated[bool, typer.Option("--list", help="List the catalogue, and what is here.")] = False,
    offline: Annotated[bool, typer.Option("--offline", help="Take nothing from the network.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Fetch published weights, and convert them for use by their name.

    Prints the path of the model file; `--model NAME` then finds it. Files are kept where the hub's own tools keep them and are
    not fetched twice. HF_ENDPOINT names a mirror, HF_HUB_OFFLINE=1 is --offline, MIMI_CATALOGUE names another catalogue.
    """
    entries = read_catalogue()
    if list_all:
        _print_catalogue(entries, as_json=as_json)
        return
    entry = _chosen(entries, name)
    if not entry.sha256_verified:
        print_warning(f"{entry.name}: the catalogue's sha256 is as others state it; its authors have not hashed the file")
    # Only a pull needs what fetches.
    from codec_core.hub import pull  # noqa: PLC0415

    path = pull(entry, offline=offline)
    if as_json:
        print_json({"name": entry.name, "path": str(path), "sha256": entry.sha256, "licence": entry.licence})
    else:
        typer.echo(path)


def _chosen(entries: dict[str, CatalogueEntry], name: str | None) -> CatalogueEntry:
    chosen = next(iter(entries.values()), None) if name is None else entries.get(name)
    if chosen is None:
        raise SettingError("model", repr(name), f"a name of {catalogue_path()}: {', '.join(entries)}")
    return chosen


def _print_catalogue(entries: dict[str, CatalogueEntry], *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                name: {**dataclasses.asdict(entry), "path": str(pulled_path(name)) if pulled_path(name).is_file() else None}
                for name, entry in entries.items()
            }
        )
        return
    table = Table("name", "what", "from", "licence", "here", box=None, pad_edge=False, header_style="bold")
    for name, entry in entries.items():
        here = "yes" if pulled_path(name).is_file() else "no"
        cells = (name, entry.description, f"{entry.repository}@{entry.revision[:8]}", entry.licence, here)
        table.add_row(*(Text(cell) for cell in cells))
    result_console().print(table)
