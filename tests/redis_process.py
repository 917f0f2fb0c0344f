"""A Redis of the tests' own. Skipped where it is missing, unless ``MIMI_REQUIRE_REDIS`` is set: then that is a failure."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

START_TIMEOUT_S = 60


@contextlib.contextmanager
def running_redis(folder: Path) -> Iterator[str]:
    """Run a server on a socket in a folder; yields its URL."""
    program = shutil.which("redis-server")
    if program is None:
        _missing("redis-server is not installed (apt-get install redis-server)")
    if importlib.util.find_spec("redis") is None:
        _missing("the package redis is not installed: pip install '.[redis]'")
    path = folder / "socket"
    command = [str(program), "--port", "0", "--unixsocket", str(path), "--save", "", "--dir", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        _wait_for(path, process)
        yield f"unix://{path}"
    finally:
        process.terminate()
        process.wait()


def _wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline_s and process.poll() is None:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(path))
            return
        time.sleep(0.02)
    raise AssertionError("redis-server did not start")


def _missing(reason: str) -> None:
    if os.environ.get("MIMI_REQUIRE_REDIS"):
        pytest.fail(reason)
    pytest.skip(reason)
