"""Runs ``mimi`` in this process, and as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from codec_core.cli.main import run


@dataclass(frozen=True)
class Outcome:
    status: int
    output: str
    errors: str


@pytest.fixture
def mimi(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """mimi(*arguments) runs a command in this process."""

    def call(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["mimi", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "120")
        with pytest.raises(SystemExit) as exit_:
            run()
        captured = capsys.readouterr()
        return Outcome(int(exit_.value.code or 0), captured.out, captured.err)

    return call


@pytest.fixture
def mimi_process(tmp_path: Path) -> Callable[..., subprocess.Popen[bytes]]:
    """mimi_process(*arguments, path=...) starts the installed command; path goes before everything Python imports from."""

    def start(*arguments: object, path: Path | None = None) -> subprocess.Popen[bytes]:
        environment = dict(os.environ)
        if path is not None:
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(path), environment.get("PYTHONPATH")]))
        command = [str(Path(sys.executable).with_name("mimi")), *map(str, arguments)]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, cwd=tmp_path)

    return start
