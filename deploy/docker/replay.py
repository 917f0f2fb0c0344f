"""Does what docs/docker.md says to do with Docker, without Docker: builds the image and runs every line.

The Dockerfile, its .dockerignore and the document's ``docker run`` lines are read as they are; what is not understood is an
error. Needs root on Linux, mmdebstrap, and a network with Debian's and Python's packages. The README beside this file says what
is not replayed.
"""

from __future__ import annotations

import argparse
import json
import secrets
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from clean_root import CleanRootError, mounted, require_tools, run
from container import Container, start
from docker_run import RunLine, RunLineError, read_run_line, shell_lines
from dockerfile import DockerfileError, read_stages
from image_build import Builder, Image, size_mb

CHECKOUT = Path(__file__).resolve().parents[2]
DOCUMENT = CHECKOUT / "docs" / "docker.md"
CLIP = CHECKOUT / "tests" / "golden" / "vectors" / "signals" / "sample_2.wav"
TOOLS = ("mmdebstrap", "chroot", "unshare", "nsenter", "mount", "umount", "cp", "du")
COMPILERS = ("cc", "gcc", "g++", "c++", "clang", "ld", "as", "make", "cmake", "ninja", "pip", "pip3")
MOST_MB = 300
SBOM = "opt/mimi/sbom.cdx.json"
INSTALLED = """
import importlib.metadata, json
print(json.dumps([[one.name, one.version] for one in importlib.metadata.distributions()]))
"""
REFUSED_STATUS = 2
REFUSAL_TIMEOUT_S = 60
PRIVATE = "--in-private-mounts"


def main() -> int:
    """Replay; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--work", type=Path, help="folder to keep the roots in; a base that is there is used again")
    parser.add_argument(PRIVATE, action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    try:
        require_tools(*TOOLS)
        if not options.in_private_mounts:
            # Whatever is mounted is gone when the process is, however it ends.
            private = ["unshare", "--mount", "--propagation=private", sys.executable, *sys.orig_argv[1:], PRIVATE]
            return subprocess.run(private, check=False).returncode  # noqa: S603
        with tempfile.TemporaryDirectory(prefix="mimi-replay-") as temporary:
            folder = options.work or Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            replay(folder)
    except (CleanRootError, DockerfileError, RunLineError) as error:
        print(f"replay: {error}", file=sys.stderr)
        return 1
    return 0


def replay(folder: Path) -> None:
    """Build the image and run every documented line."""
    started_s = time.monotonic()
    image = Builder(CHECKOUT, folder).build(read_stages((CHECKOUT / "Dockerfile").read_text()))
    check_files(image)
    check_sbom(image)
    variables = {"PWD": str(folder), "MIMI_API_KEYS": secrets.token_urlsafe(32)}
    make_model(image, folder / "models")
    lines = shell_lines(DOCUMENT.read_text(), "docker run")
    for text in lines:
        replay_line(image, read_run_line(text, variables), folder)
    refused = read_run_line(lines[0], {"PWD": str(folder)})
    replay_refusal(image, refused, folder)
    print(f"{len(lines)} documented lines replayed in {time.monotonic() - started_s:.0f} s")


def check_files(image: Image) -> None:
    """Hold the image to its size and to what must not be in it.

    Raises:
        CleanRootError: it is too big, or has a compiler.

    """
    path = image.config.environment["PATH"].split(":")
    found = [name for name in COMPILERS for folder in path if (image.root / folder.lstrip("/") / name).exists()]
    total_mb, base_mb = size_mb(image.root), size_mb(image.base)
    print(f"image: {total_mb:.0f} MB unpacked, {total_mb - base_mb:.0f} MB of it ours, the rest stands in for the base")
    if found or total_mb > MOST_MB:
        raise CleanRootError(f"found {total_mb:.0f} MB and {found}, expected at most {MOST_MB} MB and none of {COMPILERS}")


def check_sbom(image: Image) -> None:
    """Hold the image's list of what is in it to what is in it.

    Raises:
        CleanRootError: they differ.

    """
    listed = json.loads((image.root / SBOM).read_text())
    found = {(one["name"], one["version"]) for one in listed["components"]}
    inside = ["chroot", str(image.root), "python3", "-c", INSTALLED]
    installed = {tuple(one) for one in json.loads(run(inside, image.config.environment))}
    print(f"{listed['bomFormat']} {listed['specVersion']}: {len(found)} packages")
    if found != installed:
        raise CleanRootError(f"listed only: {found - installed}; installed only: {installed - found}")


def make_model(image: Image, folder: Path) -> None:
    """Make a model file to mount, with the image's own command."""
    folder.mkdir(exist_ok=True)
    with mounted(["--bind", str(folder), str(image.root / "models")]):
        for arguments in ("synth --preset tiny --force -o tiny.safetensors", "convert --force tiny.safetensors -o mimi.gguf"):
            inside = ["chroot", str(image.root), "env", "--chdir=/models", "mimi", *arguments.split()]
            run(inside, image.config.environment | {"HOME": "/models"})


def replay_line(image: Image, line: RunLine, folder: Path) -> None:
    """Run one line: wait until the health check passes, ask for everything, look at the process, stop it.

    Raises:
        CleanRootError: something is not as promised.

    """
    print(f"$ {line.text}", flush=True)
    with start(image, line, folder) as container:
        container.network_up()
        ready_s = wait_until_healthy(image, container)
        check_process(image, line, container)
        port = next(iter(line.published.values()))
        program = Path(__file__).with_name("check_service.py").read_text()
        asks = "key" if "MIMI_API_KEYS" in line.environment else "open"
        facts = json.loads(container.execute(["python3", "-c", program, str(port), asks], CLIP.read_bytes()))
        status, stop_s = container.stop()
        if status != 0:
            raise CleanRootError(f"exit status {status} after the stop signal:\n{container.log}")
    print(f"  healthy after {ready_s:.1f} s, stopped with 0 after {stop_s:.1f} s; {json.dumps(facts)}", flush=True)


def wait_until_healthy(image: Image, container: Container) -> float:
    """Run the image's health check as Docker would, until it passes; return the seconds that took.

    Raises:
        CleanRootError: not within the start period, or the container has ended.

    """
    timing = image.config.healthcheck_s
    started_s = time.monotonic()
    while True:
        try:
            container.execute(image.config.healthcheck, timeout_s=timing["timeout"])
        except CleanRootError:
            if time.monotonic() - started_s > timing["start-period"]:
                raise
            _ = container.pid  # raises with the log, if there is no container left to wait for
            time.sleep(0.25)
        else:
            return time.monotonic() - started_s


def check_process(image: Image, line: RunLine, container: Container) -> None:
    """Look from outside at what the process may do.

    Raises:
        CleanRootError: more than the line says.

    """
    proc = Path("/proc") / str(container.pid)
    status = dict(row.split(":\t", 1) for row in (proc / "status").read_text().splitlines() if ":\t" in row)
    listening = [row.split()[1] for row in (proc / "net" / "tcp").read_text().splitlines()[1:] if row.split()[3] == "0A"]
    mounts = [row.split() for row in (proc / "mountinfo").read_text().splitlines()]
    root_options = next(mount[5].split(",") for mount in mounts if mount[4] == "/")
    found = {
        "user": status["Uid"].split(),
        "capabilities": int(status["CapEff"], 16),
        "no new privileges": status["NoNewPrivs"] == "1",
        "first of its namespace": status["NSpid"].split()[-1],
        "listens on": listening,
        "read-only root": "ro" in root_options,
    }
    expected = {
        "user": [image.config.user.split(":")[0]] * 4,
        "capabilities": 0,
        "no new privileges": line.no_new_privileges,
        "first of its namespace": "1",
        "listens on": [f"00000000:{port:04X}" for port in line.published.values()],
        "read-only root": line.read_only,
    }
    if found != expected:
        raise CleanRootError(f"found {found}, expected {expected}")


def replay_refusal(image: Image, line: RunLine, folder: Path) -> None:
    """Run a line without its keys, which must not serve.

    Raises:
        CleanRootError: it serves, or does not say why not.

    """
    with start(image, line, folder) as container:
        status = container.wait(REFUSAL_TIMEOUT_S)
        if status != REFUSED_STATUS or "MIMI_API_KEYS" not in container.log:
            raise CleanRootError(f"exit status {status} without keys, expected {REFUSED_STATUS}:\n{container.log}")
        print(f"without keys: {container.log.strip()}")


if __name__ == "__main__":
    sys.exit(main())
