"""What the command line says of a model under a RAM budget."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table

from codec_core.cli.report import human_bytes
from codec_core.window import WindowPlan

_READ = {
    "mimi": ("read every frame", "to encode it and decode it back"),
    "lm": ("read every step", "and for a prompt once in 64 steps"),
}


def window_facts(plan: WindowPlan, component: str) -> Table:
    """Return what of a model stays under a budget and what does not; ``component`` is ``mimi`` or ``lm``."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    table.add_row("budget", f"{human_bytes(plan.budget_bytes)}, of which {human_bytes(plan.memory_bytes)} are used")
    table.add_row("always stays", human_bytes(plan.fixed_bytes))
    for label, value in (*_tables(plan), *_layers(plan, *_READ[component])):
        table.add_row(label, value)
    return table


def _tables(plan: WindowPlan) -> Iterable[tuple[str, str]]:
    if plan.table_bytes:
        size = human_bytes(plan.table_bytes)
        yield "token tables", f"{size}, of which rows are read from the file" if plan.reads_rows else f"{size} stay"


def _layers(plan: WindowPlan, when: str, what_for: str) -> Iterable[tuple[str, str]]:
    kept = f"{plan.resident_layers} of {plan.layers}"
    size = plan.resident_bytes - plan.fixed_bytes - plan.resident_table_bytes
    budgets = f"from {human_bytes(plan.minimum_bytes)}; {human_bytes(plan.full_bytes)} hold everything"
    if plan.streams:
        yield "layers that stay", f"{kept}, {human_bytes(size)}"
        yield when, f"the others, {human_bytes(plan.streamed_bytes)} {what_for}"
        yield "slots", f"{plan.slots} of {human_bytes(plan.slot_bytes)}, filled through {human_bytes(plan.staging_bytes)}"
        yield "budgets", budgets
    elif plan.reads_rows:
        yield "layers that stay", kept
        yield "budgets", budgets
    else:
        yield "layers that stay", f"{kept}: nothing is read again"
