"""WebDataset tars: which members are audio, and a view of one member's bytes that needs no copy."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from codec_core.corpus.inputs import AUDIO_SUFFIXES, Source
from codec_core.errors import AudioFileError


def tar_sources(path: Path) -> Iterator[Source]:
    """Yield the audio members of an uncompressed tar in its order; only their headers are read.

    Raises:
        AudioFileError: it cannot be read, or is no tar.

    """
    try:
        with tarfile.open(path, "r:") as tar:
            for member in tar:
                if member.isreg() and not member.issparse() and Path(member.name).suffix.lower() in AUDIO_SUFFIXES:
                    yield Source(os.fspath(path), member.name, member.offset_data, member.size)
    except OSError as cause:
        raise AudioFileError(str(path), cause.strerror or str(cause), "a tar that can be read") from cause
    except (tarfile.TarError, ValueError) as cause:
        raise AudioFileError(str(path), str(cause) or type(cause).__name__, "an uncompressed tar") from cause


class FileWindow(io.RawIOBase):
    """A part of a file, as a file of its own: ``size_bytes`` from ``offset_bytes`` on, less where the file ends before."""

    def __init__(self, path: str | os.PathLike[str], offset_bytes: int, size_bytes: int) -> None:
        """Open the file.

        Raises:
            OSError: it cannot be opened.

        """
        self._file = Path(path).open("rb", buffering=0)  # noqa: SIM115 - close() closes it
        self._offset_bytes = offset_bytes
        self._size_bytes = max(0, min(size_bytes, os.fstat(self._file.fileno()).st_size - offset_bytes))
        self._at = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the place within the window."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move within the window."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size_bytes}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as the window goes."""
        view = memoryview(buffer).cast("B")
        wanted = min(len(view), max(0, self._size_bytes - self._at))
        self._file.seek(self._offset_bytes + self._at)
        count = self._file.readinto(view[:wanted]) or 0
        self._at += count
        return count

    def close(self) -> None:
        """Close the file; harmless when repeated."""
        if hasattr(self, "_file"):
            self._file.close()
        super().close()
