"""The type stub of the extension is the one its own code makes now."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
STUB = ROOT / "codec_core" / "_ext.pyi"
RUFF = shutil.which("ruff", path=sysconfig.get_path("scripts")) or shutil.which("ruff")


@pytest.mark.skipif(
    importlib.util.find_spec("nanobind") is None or RUFF is None, reason="nanobind and ruff come with the dev extra"
)
def test_the_committed_stub_is_current(tmp_path: Path):
    made = tmp_path / "_ext.pyi"
    stubgen = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "codec_core._ext", "-o", str(made)]
    subprocess.run(stubgen, cwd=tmp_path, check=True)
    ruff = [str(RUFF), "format", "--quiet", "--config", str(ROOT / "pyproject.toml"), str(made)]
    subprocess.run(ruff, cwd=tmp_path, check=True)
    assert made.read_text() == STUB.read_text(), "make it anew as CONTRIBUTING.md says"
