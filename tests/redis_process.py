"""A Redis of the tests' own."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests.tools import tool

START_TIMEOUT_S = 60


@contextlib.contextmanager
def running_redis(folder: Path) -> Iterator[str]:
    """Run a server on a socket in a folder; yields its URL."""
    program = tool("redis-server", "apt-get install redis-server")
    path = folder / "socket"
    command = [program, "--port", "0", "--unixsocket", str(path), "--save", "", "--dir", str(folder)]
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
