"""A Redis of a test's own."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools import tool


@contextlib.contextmanager
def running_redis(folder: Path) -> Iterator[str]:
    """Run a Redis on a socket in this folder; yields its address, as the setting ``snapshot_store`` takes it."""
    program = tool("redis-server", "apt-get install redis-server")
    pytest.importorskip("redis", reason="the package redis is not installed: pip install '.[redis]'")
    path = folder / "redis"
    command = [program, "--port", "0", "--unixsocket", str(path), "--save", "", "--dir", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while not path.exists():
        time.sleep(0.02)
    yield f"unix://{path}"
    process.terminate()
    process.wait()
