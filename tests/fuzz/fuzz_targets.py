"""The targets by name, for the programs of this folder, which do not run under pytest."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Protocol, cast

ROOT: Final = Path(__file__).parents[2]
TARGETS: Final = tuple(sorted(path.stem for path in (Path(__file__).parent / "targets").glob("*.py")))
CORPUS: Final = Path(__file__).parent / "corpus"

# The tests import one another from the repository's root, which must not be on the path: the installed packages are meant.
if "tests" not in sys.modules:
    tests = ModuleType("tests")
    tests.__path__ = [str(ROOT / "tests")]
    sys.modules["tests"] = tests


class Target(Protocol):
    """A module of ``targets``."""

    COVERED: tuple[str, ...]
    """Files of the repository whose lines it is to reach."""
    DICTIONARY: tuple[bytes, ...]

    def one_input(self, data: bytes) -> None:
        """Read an input; whatever it raises is a finding."""

    def seeds(self) -> Iterator[bytes]:
        """Make inputs to begin with: good ones, and one of every hostile class."""


def load(name: str) -> Any:
    """Return a target, a :class:`Target`."""
    return cast(Target, importlib.import_module(f"tests.fuzz.targets.{name}"))


def committed_inputs(name: str) -> list[Path]:
    """Inputs that once found something, and small ones of every hostile class."""
    return sorted((CORPUS / name).glob("*.fuzz"))
