"""Show what a model file holds."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.bar import Bar
from rich.table import Table
from rich.text import Text

from codec_core import _ext
from codec_core.cli.inspect_language import facts_of, inspect_language_model, inspect_voice_prompt
from codec_core.cli.options import BudgetOption, JsonOption
from codec_core.cli.report import human_bytes, print_json, printable, result_console
from codec_core.cli.window_report import window_facts
from codec_core.convert.component import component_of
from codec_core.model import resolve_model_path
from codec_core.window import WindowPlan, plan_language_window, plan_window

BAR_COLUMNS = 24
_COMPONENT_NAMES = {"mimi": "codec", "lm": "language model", "voice": "voice prompt"}
_SHOWN_ELSEWHERE = frozenset({"general.architecture", "general.name"})


def command(
    model: Annotated[str, typer.Argument(help="A model file (GGUF), a checkpoint, or the name of a model.")] = "default",
    tensors: Annotated[bool, typer.Option("--tensors", help="List every tensor.")] = False,
    ram_budget: BudgetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a model file holds: geometry, types, sizes, provenance.

    The file is checked as completely as when it is loaded; one that is broken is refused, saying why. It may be the codec, a
    language model or a voice prompt. A checkpoint of the codec is first converted into the cache, once, and the file made from
    it is shown. With a budget, also what of a codec or language model would stay in memory under it and what would be read
    again and again.
    """
    path = str(resolve_model_path(model))
    found = _inspect(path)
    plan = None if ram_budget is None else _plan(path, found["component"], ram_budget)
    if as_json:
        print_json({"path": path, **found} | ({} if plan is None else {"window_plan": asdict(plan)}))
        return
    console = result_console()
    console.print(_facts(path, found))
    console.print(_sizes(found["tensors"]))
    if plan is not None:
        console.print(window_facts(plan, found["component"]))
    if tensors:
        console.print(_tensor_table(found["tensors"]))


def _plan(path: str, component: str, ram_budget: int) -> WindowPlan | None:
    if component == "voice":
        return None
    return plan_window(path, ram_budget) if component == "mimi" else plan_language_window(path, ram_budget)


def _inspect(path: str) -> dict[str, Any]:
    component = component_of(path) if Path(path).is_file() else "mimi"
    if component == "lm":
        return inspect_language_model(path)
    if component == "voice":
        return inspect_voice_prompt(path)
    return {"component": component, **_ext.inspect_model(path)}


def _facts(path: str, found: dict[str, Any]) -> Table:
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for label, value in (
        ("file", f"{path} ({human_bytes(found['file_bytes'])})"),
        ("component", _COMPONENT_NAMES[found["component"]]),
        ("name", found["name"]),
        *(_codec_facts(found) if found["component"] == "mimi" else facts_of(found)),
        *_provenance(found["metadata"]),
    ):
        table.add_row(label, Text(printable(value)))
    return table


def _codec_facts(found: dict[str, Any]) -> Iterable[tuple[str, str]]:
    geometry = found["geometry"]
    yield "weight class", found["weight_class"]
    yield "numerics", found["numerics"]
    rvq, transformer = geometry["rvq"], geometry["encoder_transformer"]
    rate = f"{geometry['sample_rate_hz']} Hz, {geometry['frame_rate_hz']:g} frames/s of {geometry['frame_samples']} samples"
    yield "audio", rate
    levels = f"{rvq['levels']} ({rvq['semantic_levels']} semantic), {geometry['default_levels']} by default"
    yield "levels", levels
    yield "codebooks", f"{rvq['codebook_entries']} entries x {rvq['codebook_dim']}"
    yield "latent", f"{rvq['dim']} wide"
    yield (
        "transformers",
        f"{transformer['layers']} layers, {transformer['heads']} heads of {transformer['head_dim']}, MLP"
        f" {transformer['mlp_width']}, context {transformer['context_steps']} steps",
    )
    yield "filters", f"{geometry['encoder']['first']['out_channels']} .. {geometry['encoder']['last']['in_channels']}"


def _provenance(metadata: dict[str, Any]) -> Iterable[tuple[str, str]]:
    for key, value in metadata.items():
        if key.startswith("general.") and key not in _SHOWN_ELSEWHERE:
            yield key.removeprefix("general."), str(value)
    for key, value in metadata.items():
        if match := re.fullmatch(r"moshi\.(?:mimi|lm|voice)\.(\w+_sha256|converter)", key):
            yield match[1].replace("_", " "), str(value)


def _family(name: str) -> str:
    """Return the part of the model a tensor belongs to: the first word after ``mimi.``, ``lm.`` or ``voice.``."""
    return name.split(".")[1]


def _sizes(tensors: list[dict[str, Any]]) -> Table:
    families: dict[str, list[dict[str, Any]]] = {}
    for tensor in tensors:
        families.setdefault(_family(tensor["name"]), []).append(tensor)
    largest = max(sum(tensor["bytes"] for tensor in members) for members in families.values())
    table = Table("part", "tensors", "types", "parameters", "bytes", "", box=None, pad_edge=False, header_style="bold")
    for column in (1, 3, 4):
        table.columns[column].justify = "right"
    for family, members in families.items():
        size = sum(tensor["bytes"] for tensor in members)
        parameters = sum(math.prod(tensor["shape"]) for tensor in members)
        types = ", ".join(sorted({tensor["type"] for tensor in members}))
        bar = Bar(largest, 0, size, width=BAR_COLUMNS)
        table.add_row(family, str(len(members)), types, f"{parameters:,}", human_bytes(size), bar)
    return table


def _tensor_table(tensors: list[dict[str, Any]]) -> Table:
    table = Table("tensor", "type", "shape", "bytes", box=None, pad_edge=False, header_style="bold")
    table.columns[3].justify = "right"
    for tensor in tensors:
        shape = " x ".join(str(size) for size in tensor["shape"])
        table.add_row(tensor["name"], tensor["type"], shape, human_bytes(tensor["bytes"]))
    return table
