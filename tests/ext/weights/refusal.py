"""Writes a file and states how it must be refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from codec_core import _ext, errors

from .gguf_bytes import GgufFile


@dataclass
class Case:
    """One way a file can lie: what is done to a good file, and the three facts the error must state."""

    name: str
    change: Callable[[GgufFile], object]
    subject: str
    found: str
    expected: str


def inspect(folder: Path, file: GgufFile | bytes) -> dict[str, object]:
    path = folder / "model.gguf"
    path.write_bytes(file if isinstance(file, bytes) else file.to_bytes())
    return _ext.inspect_model(str(path))


def refused(folder: Path, file: GgufFile | bytes, cls: type[errors.CodecError]) -> errors.CodecError:
    with pytest.raises(errors.CodecError) as caught:
        inspect(folder, file)
    assert type(caught.value) is cls, caught.value
    return caught.value


def assert_refused(folder: Path, file: GgufFile, case: Case, cls: type[errors.CodecError]) -> None:
    case.change(file)
    error = refused(folder, file, cls)
    assert (error.subject, error.found, error.expected) == (case.subject, case.found, case.expected)


def parametrize(cases: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=[case.name for case in cases])
