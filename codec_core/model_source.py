"""What opening a model file asks of the file and of the caller, whatever the model."""

from __future__ import annotations

import hashlib
import os
import threading
import weakref
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


class FileDigest:
    """The SHA-256 of a file as it is now, read when it is first asked for: a file of many gigabytes takes many seconds.

    The file is kept open until then, so that it may meanwhile be moved, deleted or replaced. Safe to use from any thread.

    Raises:
        ModelAccessError: the file cannot be opened.

    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._hex = ""
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise ModelAccessError(f"model file {path}", error.strerror or str(error), "a readable file") from error
        self._close = weakref.finalize(self, os.close, self._descriptor)
        self._opened = _identity_of(os.fstat(self._descriptor))

    def hexadecimal(self) -> str:
        """Return the digest in hexadecimal.

        Raises:
            ModelAccessError: the file cannot be read, or has been written to since.

        """
        with self._lock:
            if not self._hex:
                self._hex = self._read()
                self._close()
            return self._hex

    def _read(self) -> str:
        try:
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            with open(self._descriptor, "rb", closefd=False) as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise ModelAccessError(f"model file {self._path}", error.strerror or str(error), "a readable file") from error
        if _identity_of(os.fstat(self._descriptor)) != self._opened:
            raise ModelAccessError(f"model file {self._path}", "a change since it was opened", "a file that stays as it is")
        return found


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
    return _identity_of(status)


def _identity_of(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
