"""Programs that tests run where they are installed: skipped without, unless ``MIMI_REQUIRE_TOOLS`` is set, as CI does."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest


def tool(name: str, where_from: str) -> str:
    """Find a program, in the environment that runs the tests or on the path.

    Args:
        name: the program.
        where_from: what brings it, for whoever lacks it.

    """
    found = shutil.which(name, path=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"], "/usr/sbin")))
    if found is not None:
        return found
    missing = f"{name} is not installed ({where_from})"
    if os.environ.get("MIMI_REQUIRE_TOOLS"):
        pytest.fail(missing)
    pytest.skip(missing)
