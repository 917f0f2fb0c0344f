"""One error tree: the engine's codes, the Python classes and the drawings in their docstrings say the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import codec_core.errors
import server.errors
from codec_core.errors import CodecError, error_classes

ENGINE_BASE = Path(__file__).parents[1] / "ext" / "base"
# Raised by the Python side only.
PYTHON_ONLY = {"input_type", "audio_file", "codes_file", "opus_data", "checkpoint", "output_exists"}


def engine_codes() -> list[str]:
    body = re.search(r"enum class ErrorCode \{(.*?)\};", (ENGINE_BASE / "error.h").read_text(), re.S)
    assert body is not None
    return re.findall(r"^\s*(\w+),", body[1], re.M)


def leaves(root: type[CodecError]) -> set[str]:
    children = root.__subclasses__()
    return set().union(*(leaves(child) for child in children)) if children else {root.code}


def test_the_engine_names_each_code_as_it_is_spelt():
    named = re.findall(r'case ErrorCode::(\w+): return "(\w+)";', (ENGINE_BASE / "error.cc").read_text())
    assert all(code == name for code, name in named)
    assert [code for code, _ in named] == engine_codes()


def test_every_code_of_the_engine_has_a_class():
    classes = error_classes()
    assert [code for code in engine_codes() if code not in classes] == []


def test_every_leaf_is_raised_by_the_engine_or_known_to_be_pythons():
    core = set().union(*(leaves(branch) for branch in CodecError.__subclasses__() if branch.__module__ == "codec_core.errors"))
    assert core == set(engine_codes()) | PYTHON_ONLY


def test_codes_are_unique():
    classes = [cls for module in (codec_core.errors, server.errors) for cls in vars(module).values() if isinstance(cls, type)]
    codes = [cls.code for cls in classes if issubclass(cls, CodecError)]
    # server.errors imports the root it grows from.
    assert len(codes) - 1 == len(set(codes)) == len(error_classes())


def drawn_tree(module) -> dict[str, tuple[str, str]]:
    """{class: (parent, code)} as the module's docstring draws it."""
    drawn: dict[str, tuple[str, str]] = {}
    path: list[str] = []
    for line in module.__doc__.splitlines():
        match = re.match(r"^    ((?:[│ ]   |[├└]── )*)(\w+Error)\b\s*(\w*)", line)
        if match is None:
            continue
        indent, name, code = match.groups()
        depth = len(indent) // 4
        path[depth:] = [name]
        drawn[name] = (path[depth - 1] if depth else "", code)
    return drawn


@pytest.mark.parametrize("module", [codec_core.errors, server.errors], ids=lambda module: module.__name__)
def test_the_drawing_is_the_tree(module):
    own = {
        name: cls
        for name, cls in vars(module).items()
        if isinstance(cls, type) and issubclass(cls, CodecError) and (cls.__module__ == module.__name__ or cls is CodecError)
    }
    drawn = drawn_tree(module)
    assert drawn.keys() == own.keys()
    for name, (parent, code) in drawn.items():
        assert not parent or own[name].__base__ is own[parent], name
        assert code in ("", own[name].code), name
        assert code or own[name].__subclasses__(), f"{name} is a leaf and shows no code"
