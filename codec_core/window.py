"""Models larger than memory: budgets, what one comes to, and what the tensor window has done; see ``docs/tensor_window.md``."""

from __future__ import annotations

import os
import re
import resource
from dataclasses import dataclass
from typing import Any, Final

from codec_core import _ext
from codec_core.errors import SettingError

BUDGET_VARIABLE: Final = "MIMI_RAM_BUDGET"
_UNITS: Final = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}
_MOST_BYTES: Final = 1 << 62


@dataclass(frozen=True)
class WindowPlan:
    """What of a model stays in memory under a budget; sizes are of weights as the kernels read them.

    ``budget_bytes`` is 0 where there is no limit. ``minimum_bytes`` is the least budget that works, from ``full_bytes`` on
    everything stays. ``fixed_bytes`` (SEANet, norms, quantiser) always stay, and ``resident_layers`` of the ``layers`` of the
    transformers: ``resident_bytes`` in all. The other layers, ``streamed_bytes``, pass through ``slots`` of ``slot_bytes``
    each, by way of ``staging_bytes``. ``memory_bytes`` is the sum of what is in memory.

    A language model has ``table_bytes`` of token tables, of which a step needs a few rows. They stay with everything else
    (``resident_table_bytes``), or else are the first to go, and rows are read from the file. Its layers are pieces of a
    transformer's layer, of one or several matrices.
    """

    budget_bytes: int
    minimum_bytes: int
    full_bytes: int
    fixed_bytes: int
    table_bytes: int
    resident_table_bytes: int
    staging_bytes: int
    layers: int
    resident_layers: int
    resident_bytes: int
    streamed_bytes: int
    slots: int
    slot_bytes: int
    memory_bytes: int

    @property
    def streams(self) -> bool:
        """Whether layers pass through; otherwise all of them stay, and there is no window."""
        return self.slots > 0

    @property
    def reads_rows(self) -> bool:
        """Whether token tables stay in the file."""
        return self.resident_table_bytes < self.table_bytes


@dataclass(frozen=True, kw_only=True)
class WindowCounters:
    """Counters of a tensor window, from the opening of its model on.

    ``bytes_read`` come from the file, ``loads`` are layers read whole, ``failed_loads`` those given up for an error. A step
    that needs a layer finds it there (``hits``) or waits for it (``stalls``, ``stall_ms`` in all). For ``reading_ms`` the
    window was reading, at ``read_bytes_per_s``. ``resident_bytes`` and ``streamed_bytes`` are those of the plan.
    ``major_faults`` are the whole process's since its start: pages that had to come from a disk.
    """

    bytes_read: int
    loads: int
    failed_loads: int
    hits: int
    stalls: int
    stall_ms: float
    reading_ms: float
    read_bytes_per_s: float
    resident_bytes: int
    streamed_bytes: int
    slots: int
    slot_bytes: int
    major_faults: int


@dataclass(frozen=True, kw_only=True)
class WindowStats(WindowCounters):
    """Counters of a codec's tensor window.

    ``encode_read_bytes`` and ``decode_read_bytes`` are what one step of any number of sessions reads.
    """

    encode_read_bytes: int
    decode_read_bytes: int


@dataclass(frozen=True, kw_only=True)
class LanguageWindowStats(WindowCounters):
    """Counters of a language model's tensor window, and of the rows read of tables that stay in the file.

    ``step_read_bytes`` is what one step of any number of sessions, or a prompt of up to 64 steps of each, reads of the layers
    that pass through, if it computes codes; a set of weights that several codebooks share may be read again. ``rows_read``,
    ``row_bytes_read`` in all, are not part of ``bytes_read``.
    """

    step_read_bytes: int
    rows_read: int
    row_bytes_read: int


def parse_budget(text: str, subject: str = "ram_budget_bytes") -> int:
    """Return a number of bytes from ``1500000000``, ``512MiB``, ``1.5 GB`` and the like.

    Raises:
        SettingError: anything else, 0, or a negative number.

    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]I?B)?", text.strip(), re.IGNORECASE | re.ASCII)
    size = int(float(match[1]) * _UNITS[(match[2] or "").upper()]) if match and len(match[1]) <= 20 else 0
    if not 1 <= size <= _MOST_BYTES:
        raise SettingError(subject, repr(text), "bytes, as 2000000000, 512MiB or 2GB")
    return size


def chosen_budget(ram_budget_bytes: int | None) -> int:
    """Return the budget to open a model under: the one given, else that of ``MIMI_RAM_BUDGET``, else 0 for no limit.

    Raises:
        SettingError: a budget that is no number of bytes.

    """
    if ram_budget_bytes is None:
        text = os.environ.get(BUDGET_VARIABLE, "")
        return parse_budget(text, BUDGET_VARIABLE) if text else 0
    if isinstance(ram_budget_bytes, bool) or not isinstance(ram_budget_bytes, int) or not 1 <= ram_budget_bytes <= _MOST_BYTES:
        raise SettingError("ram_budget_bytes", repr(ram_budget_bytes), "a whole number of bytes, or None for no limit")
    return ram_budget_bytes


def plan_window(path: str | os.PathLike[str], ram_budget_bytes: int, numerics: str | None = None) -> WindowPlan:
    """Say what a model file would come to under a budget, without loading more than what always stays.

    Raises:
        ModelAccessError, ModelFormatError, ModelContractError: the file is refused.
        SettingError: the budget is too small; the message tells the least.

    """
    return WindowPlan(**_ext.plan_window(os.fspath(path), chosen_budget(ram_budget_bytes), numerics or ""))


def plan_language_window(path: str | os.PathLike[str], ram_budget_bytes: int) -> WindowPlan:
    """Say the same of a language model's file; errors as of :func:`plan_window`."""
    return WindowPlan(**_ext.plan_language_window(os.fspath(path), chosen_budget(ram_budget_bytes)))


def stats_of(native: _ext.CodecModel) -> WindowStats | None:
    """Read the counters of a model's window; None where all its weights are resident."""
    plan = WindowPlan(**native.window_plan)
    if not plan.streams:
        return None
    reads = {"encode_read_bytes": native.encode_read_bytes, "decode_read_bytes": native.decode_read_bytes}
    return WindowStats(**_counters(plan, native.window_stats), **reads)


def language_stats_of(native: _ext.LanguageModel) -> LanguageWindowStats | None:
    """Read what has been read of a language model's file; None where all its weights are resident."""
    plan = WindowPlan(**native.window_plan)
    if not plan.streams and not plan.reads_rows:
        return None
    return LanguageWindowStats(**_counters(plan, native.window_stats), step_read_bytes=native.step_read_bytes)


def _counters(plan: WindowPlan, counted: dict[str, Any]) -> dict[str, Any]:
    seconds = counted["reading_ms"] / 1000
    return counted | {
        "read_bytes_per_s": counted["bytes_read"] / seconds if seconds else 0.0,
        "resident_bytes": plan.resident_bytes,
        "streamed_bytes": plan.streamed_bytes,
        "slots": plan.slots,
        "slot_bytes": plan.slot_bytes,
        "major_faults": resource.getrusage(resource.RUSAGE_SELF).ru_majflt,
    }
