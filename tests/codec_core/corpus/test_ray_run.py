"""A local Ray cluster of two actors gives the local run's bytes, whatever was done before.

Ray is in the extra ``ray``; without it these tests are skipped.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="Ray is not installed (the extra ray)")


@pytest.fixture
def tokenize(tiny_model_path: Path, tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """tokenize(*arguments): exit status and standard error of the command, as a process of its own."""

    def run(*arguments: object) -> tuple[int, str]:
        settings = ("-m", tiny_model_path, "-k", 8, "--shard-size", 2)
        command = [Path(sys.executable).with_name("mimi"), "tokenize", *arguments, *settings]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path)
        return done.returncode, done.stderr

    return run


@pytest.mark.slow
@pytest.mark.usefixtures("few_files")
def test_a_cluster_gives_the_local_bytes(tokenize, contents, tmp_path: Path):
    """Sources are given by a relative path, which on every machine means the same."""
    assert tokenize("few", "-o", "local")[0] == 3
    (tmp_path / "cluster" / "ledger").mkdir(parents=True)
    for name in ("corpus.json", "shard-000001.parquet", "ledger/shard-000001.json"):
        (tmp_path / "cluster" / name).write_bytes((tmp_path / "local" / name).read_bytes())
    before = (tmp_path / "cluster" / "shard-000001.parquet").stat().st_mtime_ns
    status, errors = tokenize("few", "-o", "cluster", "--ray", "local", "--actors", 2)
    assert status == 3, errors
    assert contents(tmp_path / "cluster") == contents(tmp_path / "local")
    assert (tmp_path / "cluster" / "shard-000001.parquet").stat().st_mtime_ns == before


@pytest.mark.slow
@pytest.mark.usefixtures("few_files")
@pytest.mark.parametrize("address", ["auto", "127.0.0.1:1"])
def test_no_cluster_at_the_address(tokenize, address: str):
    status, errors = tokenize("few", "-o", "x", "--ray", address)
    assert status == 1
    assert f"error[unavailable]: --ray {address}" in errors
