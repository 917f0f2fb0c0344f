"""A service in a process of its own, and what the system says about it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

START_TIMEOUT_S: Final = 60
END_TIMEOUT_S: Final = 60
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


class ServiceProcess:
    """One service, which may be started again after it ended; it then has the same port."""

    def __init__(self, model: Path | str, options: list[str], environment: dict[str, str] | None = None) -> None:
        self._command = [sys.executable, "-P", "-X", "faulthandler", "-m", "server", "--model", str(model), *options]
        self._environment = os.environ | (environment or {})
        self._folder = tempfile.TemporaryDirectory(prefix="mimi-bench-")
        self._log_path = Path(self._folder.name) / "log"
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        return self._log_path.read_text(errors="replace")

    def start(self, *options: str) -> None:
        """Start, and wait until it listens; options given here go before those of the beginning."""
        written = self._log_path.stat().st_size if self._log_path.exists() else 0
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._command, *options, "--port", str(self.port)],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder.name,
                env=self._environment,
            )
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while not (found := re.search(r"serves on http://127\.0\.0\.1:(\d+)", self.log[written:])):
            if self._process.poll() is not None or time.monotonic() > deadline_s:
                raise SystemExit(f"the service did not start:\n{self.log}")
            time.sleep(0.02)
        self.port = int(found[1])

    def terminate(self) -> int:
        """Send SIGTERM and return the exit status."""
        return self._end(signal.SIGTERM)

    def kill(self) -> int:
        """Send SIGKILL, as a crash would end it."""
        return self._end(signal.SIGKILL)

    def cpu_s(self) -> float:
        """Processor time used since the start."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S

    def resident_bytes(self) -> int:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * _PAGE_BYTES

    def open_files(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.terminate()
        self._folder.cleanup()

    def _end(self, number: int) -> int:
        assert self._process is not None
        self._process.send_signal(number)
        try:
            return self._process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            # It says in the log where it stands.
            self._process.send_signal(signal.SIGABRT)
            self._process.wait()
            raise SystemExit(f"the service did not end:\n{self.log}") from None


@contextlib.contextmanager
def running_service(
    model: Path | str, options: list[str], environment: dict[str, str] | None = None
) -> Iterator[ServiceProcess]:
    """Run a service for as long as the context lasts."""
    service = ServiceProcess(model, options, environment)
    try:
        service.start()
        yield service
    finally:
        service.close()
