"""Questions to processes that have done nothing else: what memory and loading are measured in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from codec_core.errors import UnavailableError


def ask(module: str, request: dict[str, Any], isa: str) -> dict[str, Any]:
    """Run a module in a process of its own and return its answer.

    Args:
        module: its full name; it takes the request as JSON in its only argument and prints the answer as JSON.
        request: what to do.
        isa: the instruction set; empty: the best this machine has.

    Raises:
        UnavailableError: the process died; tells its last words.

    """
    # Nothing of the folder in which the command was called may be taken for a package.
    command = [sys.executable, "-P", "-m", module, json.dumps(request)]
    done = subprocess.run(command, env=os.environ | {"MIMI_ISA": isa}, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise UnavailableError(f"process of {module}", reason, "an answer")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def resident_bytes() -> int:
    """Return the memory of this process that is in RAM."""
    return _status_bytes("VmRSS")


def peak_resident_bytes() -> int:
    """Return the most memory that this process has had in RAM."""
    return _status_bytes("VmHWM")


def _status_bytes(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))
