"""``docker run``, ``docker exec`` and ``docker stop`` without Docker: one process in namespaces of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from clean_root import CleanRootError, devices, mounted, run
from docker_run import RunLine
from image_build import Image

LOOPBACK_UP = """
import fcntl, socket, struct
request = struct.pack("16sH14x", b"lo", 1)  # IFF_UP
fcntl.ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0x8914, request)  # SIOCSIFFLAGS
"""
STOP_GRACE_S = 10
"""What ``docker stop`` waits before it kills."""
EXEC_TIMEOUT_S = 120
START_TIMEOUT_S = 10


class Container:
    """A container that runs; made by :func:`start`."""

    def __init__(self, image: Image, line: RunLine, process: subprocess.Popen[bytes], log: Path) -> None:
        self._image = image
        self._line = line
        self._process = process
        self._log = log

    @property
    def log(self) -> str:
        """What the process wrote."""
        return self._log.read_text(errors="replace")

    @property
    def pid(self) -> int:
        """The first process of the container, as the host numbers it.

        Raises:
            CleanRootError: it has ended.

        """
        try:
            return _child_of(self._process)
        except (OSError, IndexError) as cause:
            raise CleanRootError(f"the container has ended:\n{self.log}") from cause

    def execute(self, command: list[str], stdin: bytes = b"", timeout_s: float = EXEC_TIMEOUT_S) -> str:
        """Run a command inside, as ``docker exec`` does: same user, same environment.

        Raises:
            CleanRootError: its exit status is not 0.

        """
        spaces = ["nsenter", f"--target={self.pid}", "--mount", "--net", "--pid", "--ipc", "--uts", "--root", "--wd"]
        environment = environment_of(self._image, self._line)
        return run([*spaces, *privileges(self._image, self._line), *command], environment, stdin, timeout_s)

    def network_up(self) -> None:
        """Give the container its loopback interface."""
        run(["nsenter", f"--target={self.pid}", "--net", sys.executable, "-c", LOOPBACK_UP])

    def stop(self) -> tuple[int, float]:
        """Send the image's signal; return the exit status and the seconds it took.

        Raises:
            CleanRootError: not within the grace time.

        """
        started_s = time.monotonic()
        os.kill(self.pid, signal.Signals[self._image.config.stop_signal])
        return self.wait(STOP_GRACE_S), time.monotonic() - started_s

    def wait(self, timeout_s: float) -> int:
        """Wait for the end and return the exit status.

        Raises:
            CleanRootError: it goes on.

        """
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired as cause:
            raise CleanRootError(f"still running after {timeout_s} s:\n{self.log}") from cause


def environment_of(image: Image, line: RunLine) -> dict[str, str]:
    """Make the environment of the process: the image's variables, then the line's, and nothing of the host's."""
    return image.config.environment | {"HOME": "/nonexistent", "HOSTNAME": "mimi"} | line.environment


def privileges(image: Image, line: RunLine) -> list[str]:
    """Say how to become the image's user with what the line leaves of privileges."""
    uid, gid = image.config.user.split(":")
    command = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups"]
    if line.no_new_privileges:
        command.append("--no-new-privs")
    if line.drop_capabilities:
        command += ["--inh-caps=-all", "--bounding-set=-all"]
    return command


def _wait_until_inside(process: subprocess.Popen[bytes]) -> None:
    """Wait until the first process of the container has its root; one that has ended already had it."""
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while process.poll() is None:
        with contextlib.suppress(OSError, IndexError):
            if Path(f"/proc/{_child_of(process)}/root").readlink() != Path("/"):
                return
        if time.monotonic() > deadline_s:
            raise CleanRootError(f"not inside its namespaces after {START_TIMEOUT_S} s")
        time.sleep(0.01)


def _child_of(process: subprocess.Popen[bytes]) -> int:
    return int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])


@contextlib.contextmanager
def start(image: Image, line: RunLine, folder: Path) -> Iterator[Container]:
    """Run the image as the line says, for the time of a block."""
    log = folder / f"container-{time.monotonic_ns()}.log"
    command = [*image.config.entrypoint, *line.arguments]
    with _file_system(image, line, folder) as root:
        spaces = ["--net", "--pid", "--ipc", "--uts", "--fork", "--kill-child=SIGKILL", f"--mount-proc={root / 'proc'}"]
        inside = ["chroot", str(root), "env", f"--chdir={image.config.workdir}", *privileges(image, line), *command]
        unshare = shutil.which("unshare") or "unshare"
        with log.open("wb") as output:
            process = subprocess.Popen(  # noqa: S603
                [unshare, *spaces, *inside], env=environment_of(image, line), stdout=output, stderr=subprocess.STDOUT
            )
        try:
            _wait_until_inside(process)
            yield Container(image, line, process, log)
        finally:
            process.kill()
            process.wait()


@contextlib.contextmanager
def _file_system(image: Image, line: RunLine, folder: Path) -> Iterator[Path]:
    """Mount the image as the container sees it."""
    root = folder / "container"
    root.mkdir(exist_ok=True)
    mounts = [["--bind", str(image.root), str(root)]]
    for volume in line.volumes:
        # Docker makes the folder that it mounts on, if the image has none.
        (image.root / volume.target.lstrip("/")).mkdir(parents=True, exist_ok=True)
        access = "ro" if volume.read_only else "rw"
        mounts.append(["--bind", "-o", access, volume.source, str(root / volume.target.lstrip("/"))])
    tmpfs = ["-t", "tmpfs", "-o", "mode=1777,nosuid,nodev,noexec", "tmpfs"]
    mounts += [[*tmpfs, str(root / path.lstrip("/"))] for path in line.tmpfs]
    with mounted(*mounts), devices(root):
        if line.read_only:
            run(["mount", "-o", "remount,bind,ro", str(root)])
        yield root
