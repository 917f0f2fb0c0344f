"""The raw form of moshi.cpp: tensors under their bare names, long ones shortened, and not one word of metadata."""

from __future__ import annotations

import dataclasses
from typing import Final

from codec_core import _ext
from codec_core.convert.planned_model import (
    MIMI_CONTEXT_STEPS,
    MIMI_HEADS,
    MIMI_LEVELS,
    MIMI_MAX_PERIOD,
    PlannedModel,
    PlannedTensor,
)
from codec_core.errors import CheckpointError, SettingError

RAW_NUMERICS: Final = "ggml"
"""The arithmetic a file without metadata asks for."""


def raw_tensors(plan: PlannedModel) -> list[PlannedTensor]:
    """Return the tensors under the names a raw file has for them."""
    return [dataclasses.replace(tensor, name=_ext.mangled_name(tensor.name)) for tensor in plan.tensors]


def raw_levels(plan: PlannedModel) -> int:
    """Return the RVQ levels a session uses of a file without metadata."""
    return min(MIMI_LEVELS, plan.levels)


def require_raw_says_it(plan: PlannedModel, levels: int | None, numerics: str | None) -> None:
    """Refuse settings, or a model, that a file without metadata would not be read back as.

    Args:
        plan: the model.
        levels: the caller's setting; None: whatever a raw file has.
        numerics: likewise.

    Raises:
        SettingError: levels or numerics a raw file cannot ask for.
        CheckpointError: a geometry it cannot state.

    """
    taken = "which a raw file is taken to have"
    if levels not in (None, raw_levels(plan)):
        raise SettingError("levels", f"{levels}", f"{raw_levels(plan)}, {taken}")
    if numerics not in (None, RAW_NUMERICS):
        raise SettingError("numerics", f"{numerics}", f"{RAW_NUMERICS}, {taken}")
    for subject, found, expected in (
        ("transformer heads", plan.heads, MIMI_HEADS),
        ("transformer context", plan.context_steps, MIMI_CONTEXT_STEPS),
        ("transformer max_period", plan.max_period, MIMI_MAX_PERIOD),
    ):
        if found != expected:
            raise CheckpointError(subject, f"{found}", f"{expected}, {taken}")
