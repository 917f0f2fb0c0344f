"""What a figure is worth nothing without: the machine it was measured on, and how busy that was."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from codec_core import _ext

_CPU_FILE: Final = Path("/proc/cpuinfo")
_CACHE_FOLDER: Final = Path("/sys/devices/system/cpu/cpu0/cache")


def describe_machine() -> dict[str, Any]:
    """Return the processor's name, the cores this process may use, caches, usable instruction sets and the load of a minute."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "caches": _caches(),
        "instruction_sets": _ext.Kernels.usable_isas(),
        "load_before": round(os.getloadavg()[0], 2),
    }


def _processor() -> str:
    lines = _CPU_FILE.read_text(encoding="utf-8").splitlines() if _CPU_FILE.exists() else []
    facts = {line.partition(":")[0].strip(): line.partition(":")[2].strip() for line in reversed(lines)}
    name = facts.get("model name", "unknown")
    if {"cpu family", "model"} <= facts.keys():
        name += f", family {facts['cpu family']}, model {facts['model']}"
    return name


def _caches() -> dict[str, str]:
    """Return size by level, such as ``{"L1d": "48K"}``, as the first core sees it; empty where the system does not say."""
    found = {}
    for folder in sorted(_CACHE_FOLDER.glob("index*")):
        level, kind, size = ((folder / name).read_text(encoding="ascii").strip() for name in ("level", "type", "size"))
        found[f"L{level}{kind[0].lower() if kind != 'Unified' else ''}"] = size
    return found
