"""Folders that stand in for containers' file systems: a base made from Debian's packages, and commands run inside.

Needs root, Linux namespaces, and mmdebstrap. Mounts are made in the caller's mount namespace, which should be private.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

PYTHON_IMAGE = re.compile(r"python:(\d+\.\d+)(?:\.\d+)?-slim-(\w+)(@sha256:[0-9a-f]{64})?")
DEVICES = ("null", "zero", "full", "random", "urandom")
UNPACKED = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/info/*", "/usr/share/locale/*")
"""What the slim images leave out."""
MERGED_USR = "/usr/share/mmdebstrap/hooks/merged-usr"
"""Lays /usr out as the images have it; otherwise a package that does so later would bring the whole of Perl."""
HEADERS = (
    "cd /tmp && apt-get download --quiet=2 {package} && dpkg-deb --fsys-tarfile {package}_*.deb"
    " | tar --extract --directory / ./usr/include && rm {package}_*.deb"
)
"""Python's headers, which the image has and Debian keeps in a package that would pull in a C library's headers as well."""
LENT_VARIABLES = (
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_TRUSTED_HOST",
    "PIP_DEFAULT_TIMEOUT",
    "HTTP_PROXY",
    "HTTPS_PROXY",
)
HOST_CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
LENT_CERTIFICATES = "/run/certificates.pem"


class CleanRootError(RuntimeError):
    """The machine does not offer what a clean root takes, or a command inside one failed."""


def require_tools(*names: str) -> None:
    """Check for root and for commands.

    Raises:
        CleanRootError: naming what is missing.

    """
    missing = [name for name in names if shutil.which(name) is None]
    if os.geteuid() != 0:
        raise CleanRootError("found an ordinary user, expected root: namespaces and chroot need it")
    if missing:
        raise CleanRootError(f"not installed: {', '.join(missing)}")


def make_base(image: str, root: Path) -> None:
    """Fill a new folder with what stands in for an official slim Python image: the same suite, Debian's Python of that version.

    Raises:
        CleanRootError: an image that is not of that kind, or whose Python Debian's suite does not have.

    """
    named = PYTHON_IMAGE.fullmatch(image)
    if named is None:
        raise CleanRootError(f"nothing stands in for {image}; expected python:VERSION-slim-SUITE")
    version, suite = named[1], named[2]
    left_out = [f"--dpkgopt=path-exclude={pattern}" for pattern in UNPACKED]
    headers = HEADERS.format(package=f"libpython{version}-dev")
    packages = f"python{version},python3-venv,ca-certificates,netbase,tzdata,usr-is-merged"
    hooks = [f"--hook-dir={MERGED_USR}", f"--customize-hook=chroot \"$1\" sh -ec '{headers}'"]
    run(["mmdebstrap", "--quiet", "--variant=minbase", f"--include={packages}", *left_out, *hooks, suite, str(root)])
    found = run(["chroot", str(root), "python3", "--version"]).split()[-1]
    if not found.startswith(f"{version}."):
        raise CleanRootError(f"{suite} has Python {found}, expected {version}")


def run(command: list[str], environment: Mapping[str, str] | None = None, stdin: bytes = b"", timeout_s: float = 600) -> str:
    """Run a command of the host and return what it printed.

    Raises:
        CleanRootError: with the end of its output, when its exit status is not 0.

    """
    done = subprocess.run(  # noqa: S603
        command, env=environment, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout_s, check=False
    )
    output = done.stdout.decode(errors="replace")
    if done.returncode != 0:
        raise CleanRootError(f"exit status {done.returncode} of {' '.join(command)[:200]}\n{output[-4000:]}")
    return output


@contextlib.contextmanager
def mounted(*mounts: list[str]) -> Iterator[None]:
    """Mount for the time of a block; each item is the arguments of ``mount``, the target last."""
    with contextlib.ExitStack() as stack:
        for arguments in mounts:
            run(["mount", *arguments])
            stack.callback(run, ["umount", "--lazy", arguments[-1]])
        yield


def device_mounts(root: Path) -> list[list[str]]:
    """Say how to mount a ``/dev`` with the harmless devices."""
    dev = root / "dev"
    mounts = [["-t", "tmpfs", "-o", "mode=755,size=64k", "tmpfs", str(dev)]]
    return mounts + [["--bind", f"/dev/{name}", str(dev / name)] for name in DEVICES]


@contextlib.contextmanager
def devices(root: Path) -> Iterator[None]:
    """Give a root its ``/dev`` for the time of a block."""
    tmpfs, *nodes = device_mounts(root)
    with mounted(tmpfs):
        for name in DEVICES:
            (root / "dev" / name).touch()
        with mounted(*nodes):
            yield


@contextlib.contextmanager
def network_lent(root: Path) -> Iterator[dict[str, str]]:
    """Let commands in a root use the network as the host does: its name servers, certificates and pip's index.

    Yields:
        the variables that go with it. Nothing of it is left in the root.

    """
    lent = {name: os.environ[name] for name in LENT_VARIABLES if name in os.environ}
    candidates = (os.environ.get("PIP_CERT"), os.environ.get("SSL_CERT_FILE"), HOST_CERTIFICATES)
    certificates = next((path for path in candidates if path and Path(path).is_file()), None)
    with contextlib.ExitStack() as stack:
        resolver = root / "etc" / "resolv.conf"
        resolver.touch()
        stack.enter_context(mounted(["--bind", "/etc/resolv.conf", str(resolver)]))
        if certificates:
            target = root / LENT_CERTIFICATES.lstrip("/")
            target.touch()
            stack.callback(target.unlink)
            stack.enter_context(mounted(["--bind", certificates, str(target)]))
            lent["PIP_CERT"] = LENT_CERTIFICATES
        yield lent
