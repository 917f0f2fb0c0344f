"""A source file read in pieces, which must not change while it is read."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from codec_core.errors import ModelAccessError

PIECE_BYTES: Final = 4 << 20
"""Most bytes of a payload held at once."""


class SourceFile:
    """A regular file opened for reading, as a context manager."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open the file.

        Raises:
            ModelAccessError: it cannot be opened, or is no regular file (a pipe is not waited for).

        """
        self.path = os.fspath(path)
        try:
            self._descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, ValueError) as cause:
            reason = cause.strerror if isinstance(cause, OSError) else str(cause)
            raise ModelAccessError(self.path, f"{reason}", "a file that can be read") from cause
        self._opened = os.fstat(self._descriptor)
        if not stat.S_ISREG(self._opened.st_mode):
            os.close(self._descriptor)
            raise ModelAccessError(self.path, "no regular file", "a model file")

    @property
    def size_bytes(self) -> int:
        """Size when it was opened."""
        return self._opened.st_size

    def read(self, offset_bytes: int, size_bytes: int) -> bytes:
        """Return exactly that part of the file.

        Raises:
            ModelAccessError: the file ends before, or the device fails.

        """
        pieces: list[bytes] = []
        while size_bytes > 0:
            try:
                piece = os.pread(self._descriptor, size_bytes, offset_bytes)
            except OSError as cause:
                raise ModelAccessError(self.path, f"{cause.strerror}", "bytes that can be read") from cause
            if not piece:
                raise ModelAccessError(self.path, f"the end of the file at {offset_bytes}", f"{size_bytes} more bytes")
            pieces.append(piece)
            offset_bytes += len(piece)
            size_bytes -= len(piece)
        return b"".join(pieces)

    def pieces(self, offset_bytes: int, size_bytes: int, unit_bytes: int = 1) -> Iterator[bytes]:
        """Yield that part of the file in pieces of at most about :data:`PIECE_BYTES`, each a multiple of ``unit_bytes``."""
        step = max(1, PIECE_BYTES // unit_bytes) * unit_bytes
        end = offset_bytes + size_bytes
        for start in range(offset_bytes, end, step):
            yield self.read(start, min(step, end - start))

    def sha256(self, advance: Callable[[int], None]) -> str:
        """Return the SHA-256 of the whole file in hexadecimal; ``advance`` is told the size of each piece that is done."""
        digest = hashlib.sha256()
        for piece in self.pieces(0, self.size_bytes):
            digest.update(piece)
            advance(len(piece))
        return digest.hexdigest()

    def require_unchanged(self) -> None:
        """Refuse a file that was written to since it was opened, or whose path leads to another by now.

        Raises:
            ModelAccessError: its size, or its time of modification or of change, is another; or the path is another file's.

        """
        now = os.fstat(self._descriptor)
        try:
            is_same = os.path.samestat(now, Path(self.path).stat()) and _version(now) == _version(self._opened)
        except OSError:
            is_same = False
        if not is_same:
            raise ModelAccessError(self.path, "a file that changed while it was read", "a file at rest")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        os.close(self._descriptor)


def _version(status: os.stat_result) -> tuple[int, int, int]:
    # A program can set the time of modification back, but not that of change.
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns
