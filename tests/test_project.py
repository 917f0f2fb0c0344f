"""What holds for every text of the repository, and house limits."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import codec_core
import server

ROOT = Path(__file__).parents[1]
TOP_LEVEL = (".ci", ".github", "codec_core", "deploy", "docs", "ext", "server", "tests")
BINARY_SUFFIXES = {".fuzz", ".gguf", ".npz", ".wav", ".png", ".ico", ".tgz", ".woff2"}
# What tools put beside the sources, and git does not track.
FOREIGN_FOLDERS = {"__pycache__", "node_modules", "dist"}

MOST_LINES = 300
MOST_PYTHON_FUNCTION_LINES = 30
MOST_ENGINE_FUNCTION_LINES = 40
# Function: the reason why it is longer.
LONGER_FUNCTIONS: dict[str, str] = {}

# Spelt in pieces, so that this file does not hold what it looks for.
FORBIDDEN = {
    "a path of somebody's machine": re.compile("/" + r"(work|root|home)/|" + "/" + r"tmp/(venv|w)\b|\.py" + "env"),
    "a package registry's host": re.compile(
        r"\b(" + r"|".join(("py" + r"pi\.org", "python" + r"hosted\.org", "registry" + r"\.npm", "deb\\." + "debian")) + ")",
        re.I,
    ),
    "an unfinished thought": re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" * 3)) + r")\b"),
}


def files() -> list[Path]:
    found = [path for path in ROOT.iterdir() if path.is_file()]
    for folder in TOP_LEVEL:
        found += [path for path in (ROOT / folder).rglob("*") if path.is_file() and not FOREIGN_FOLDERS & set(path.parts)]
    return sorted(found)


def texts() -> Iterator[tuple[Path, str]]:
    for path in files():
        hidden = any(part.startswith(".") and part.endswith("_cache") for part in path.parts)
        if path.suffix not in BINARY_SUFFIXES | {".so", ".pyc"} and not hidden:
            yield path.relative_to(ROOT), path.read_text(encoding="utf-8")


def documents() -> list[Path]:
    return [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def test_the_installed_packages_are_under_test():
    """A checkout that shadowed them would hide what is missing from the wheel."""
    for package in (codec_core, server):
        assert package.__file__ is not None
        assert not Path(package.__file__).is_relative_to(ROOT / package.__name__), (
            "tests see the checkout, not the installation"
        )


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_text_holds(what: str):
    found = [f"{path}: {match[0]}" for path, text in texts() for match in FORBIDDEN[what].finditer(text)]
    assert not found, found


def test_texts_end_in_one_newline():
    wrong = [
        str(path)
        for path, text in texts()
        if text and (not text.endswith("\n") or text.endswith("\n\n")) and path.name != "LICENSE"
    ]
    assert not wrong, wrong


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path):
    targets = re.findall(r"\]\((?!https?:|mailto:)([^)#\s]+)", path.read_text())
    assert not [target for target in targets if not (path.parent / target).exists()]


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.name)
def test_files_named_by_documents_exist(path: Path):
    named = re.findall(r"`((?:\.ci|codec_core|docs|ext|server|tests)/[\w./*{}-]*)`", path.read_text())
    exact = [name for name in named if "{" not in name and "NAME" not in name]
    assert not [name for name in exact if not any(ROOT.glob(name.rstrip("/")))]


def test_the_newest_change_is_this_version():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert newest is not None
    assert newest[1] == version == codec_core.__version__


def sources(*suffixes: str) -> list[Path]:
    return [ROOT / path for path, _ in texts() if path.suffix in suffixes and path.parts[0] not in {"docs", ".github"}]


def test_no_source_is_longer_than_a_reader_can_hold():
    # Not the type stub, which a program makes and nobody reads from end to end.
    lengths = {path: len(path.read_text().splitlines()) for path in sources(".py", ".cc", ".h")}
    assert not {str(path.relative_to(ROOT)): lines for path, lines in lengths.items() if lines > MOST_LINES}


def python_functions(path: Path) -> Iterator[tuple[str, int]]:
    """Each function with the lines of its body, docstring and nested functions left out."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        body = node.body[1:] if ast.get_docstring(node) is not None else node.body
        if not body:
            continue
        lines = set(range(body[0].lineno, (body[-1].end_lineno or 0) + 1))
        for inner in (child for statement in body for child in ast.walk(statement)):
            if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                lines -= set(range(inner.lineno, (inner.end_lineno or 0) + 1))
        yield f"{path.relative_to(ROOT)}:{node.name}", len(lines)


def engine_functions(path: Path) -> Iterator[tuple[str, int]]:
    """Each block that closes at the indentation of a function or a member, which clang-format gives it; classes left out."""
    opened: list[tuple[int, int, str]] = []  # indentation, line, text
    for number, line in enumerate(path.read_text().splitlines()):
        indentation = len(line) - len(line.lstrip())
        if line.lstrip().startswith("}"):
            # A constructor opens its brace at the end of its initialisers, further in than it closes.
            closed = [block for block in opened if block[0] >= indentation]
            opened = [block for block in opened if block[0] < indentation]
            if (
                closed
                and indentation in (0, 4)
                and not re.match(r"(namespace|struct|class|enum|union|template)\b", closed[0][2])
            ):
                yield f"{path.relative_to(ROOT)}:{closed[0][2]}", number - closed[0][1] + 1
        if line.endswith("{"):
            opened.append((indentation, number, line.strip()))


def too_long(measured: Iterator[tuple[str, int]], limit: int) -> list[str]:
    return [f"{name}: {lines} lines" for name, lines in measured if lines > limit and name not in LONGER_FUNCTIONS]


def test_python_functions_are_short():
    assert not [entry for path in sources(".py") for entry in too_long(python_functions(path), MOST_PYTHON_FUNCTION_LINES)]


def test_engine_functions_are_short():
    paths = sources(".cc", ".h")
    assert not [entry for path in paths for entry in too_long(engine_functions(path), MOST_ENGINE_FUNCTION_LINES)]
    assert sum(1 for path in paths for _ in engine_functions(path)) > 150
