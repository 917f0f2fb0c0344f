"""What opening a model file asks of the file and of the caller, whatever the model."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from codec_core.errors import ModelAccessError, ModelFileError, SettingError


def sha256_of(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal.

    Raises:
        ModelAccessError: the file cannot be read.

    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelAccessError(f"model file {path}", error.strerror or str(error), "a readable file") from error


def chosen_threads(threads: int | None) -> int:
    """Return the number given, else that of ``MIMI_THREADS``, else 1.

    Raises:
        SettingError: no whole number, or less than 1.

    """
    text = os.environ.get("MIMI_THREADS", "1") if threads is None else threads
    try:
        count = int(text)
    except ValueError:
        count = 0
    if count < 1:
        raise SettingError("threads", repr(text), "a whole number of at least 1")
    return count


def chosen_isa() -> str:
    """Return the instruction set that ``MIMI_ISA`` names; empty for the best this machine has."""
    return os.environ.get("MIMI_ISA", "")


@contextmanager
def file_at_rest(path: Path) -> Iterator[None]:
    """Watch over a file while it is read, and name it in what it is refused for.

    Raises:
        ModelAccessError: it changed meanwhile.

    """
    before = _identity(path)
    try:
        yield
    except ModelFileError as error:
        if os.fspath(path) in error.subject:
            raise
        raise type(error)(f"{path}: {error.subject}", error.found, error.expected) from None
    if _identity(path) != before:
        raise ModelAccessError(f"model file {path}", "a change while it was read", "a file at rest; try again")


def _identity(path: Path) -> tuple[int, ...]:
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
