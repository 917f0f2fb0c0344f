"""Options that several commands have, declared once."""

from __future__ import annotations

from typing import Annotated

import typer

from codec_core.window import parse_budget

ModelOption = Annotated[
    str, typer.Option("--model", "-m", envvar="MIMI_MODEL", help="A model file, a checkpoint (converted once), or a name.")
]
LevelsOption = Annotated[int | None, typer.Option("--levels", "-k", min=1, help="RVQ levels; without it, the model's own.")]
NumericsOption = Annotated[
    str | None,
    typer.Option("--numerics", envvar="MIMI_NUMERICS", help="kyutai, ggml or ggml-causal; without it, what the file asks for."),
]
ThreadsOption = Annotated[
    int | None, typer.Option("--threads", min=1, envvar="MIMI_THREADS", help="Threads of one step; without it, 1.")
]
BudgetOption = Annotated[
    int | None,
    typer.Option(
        "--ram-budget",
        envvar="MIMI_RAM_BUDGET",
        metavar="SIZE",
        parser=lambda text: parse_budget(str(text), "--ram-budget"),
        help="Most memory for weights, as 512MiB; without it, all of them stay.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
ForceOption = Annotated[bool, typer.Option("--force", "-f", help="Replace an existing output.")]
