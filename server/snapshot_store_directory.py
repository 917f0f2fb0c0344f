"""Snapshots as files of a directory, shared by all processes that can lock files in it.

``ID.stream`` is a snapshot, ``ID.fence`` the fence beside it, ``lock`` what processes exclude one another with. Files are
replaced, never changed; they are not forced to the disk, since what they survive is a process and not a machine.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from codec_core.errors import SettingError
from server.snapshot_store import Fence, checked_stream_id

_SNAPSHOT: Final = ".stream"
_FENCE: Final = ".fence"
_PART: Final = ".part"
_FENCE_MAX_BYTES: Final = 1024


class DirectoryStore:
    """A :class:`~server.snapshot_store.SnapshotStore` in one directory, of mode 0700.

    Args:
        directory: made where it is missing.
        time_to_live_s: age from which a snapshot counts as gone.
        max_snapshot_bytes: larger files are not read.
        max_bytes: most bytes of all files together.

    Raises:
        SettingError: it cannot be made or written, or others than its owner and group may enter it.

    """

    def __init__(self, directory: Path, time_to_live_s: float, max_snapshot_bytes: int, max_bytes: int) -> None:
        self._directory = directory
        self._time_to_live_s = time_to_live_s
        self._max_snapshot_bytes = max_snapshot_bytes
        self._max_bytes = max_bytes
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            mode = directory.stat().st_mode
            with self._locked():
                pass
        except OSError as cause:
            raise SettingError("snapshot_store", f"{directory}: {cause.strerror}", "a directory to write in") from cause
        if mode & stat.S_IRWXO:
            found = f"{directory} of mode {stat.S_IMODE(mode):04o}"
            raise SettingError("snapshot_store", found, "a directory closed to other users: chmod o= on it")

    def save(self, stream_id: str, generation: int, pieces: Sequence[bytes]) -> None:
        """See :class:`~server.snapshot_store.SnapshotStore`."""
        path = self._path(stream_id, _SNAPSHOT)
        part = path.with_name(f"{path.name}.{secrets.token_hex(4)}{_PART}")
        try:
            with self._locked():
                self._fence(stream_id).check_write(generation)
                self._check_room(path, sum(map(len, pieces)))
            self._write(part, pieces)
            with self._locked():
                self._fence(stream_id).check_write(generation)
                part.replace(path)
                with contextlib.suppress(FileNotFoundError):
                    os.utime(self._path(stream_id, _FENCE))
        finally:
            part.unlink(missing_ok=True)

    def load(self, stream_id: str) -> bytes | None:
        """See :class:`~server.snapshot_store.SnapshotStore`."""
        return self._read(self._path(stream_id, _SNAPSHOT), self._max_snapshot_bytes)

    def claim(self, stream_id: str, token_generation: int, held_generation: int, *, held_here: bool) -> int:
        """See :class:`~server.snapshot_store.SnapshotStore`."""
        with self._locked():
            fence = self._fence(stream_id).claimed(token_generation, held_generation, held_here=held_here)
            self._set_fence(stream_id, fence)
        return fence.generation

    def confirm(self, stream_id: str, generation: int) -> None:
        """See :class:`~server.snapshot_store.SnapshotStore`."""
        with self._locked():
            self._set_fence(stream_id, self._fence(stream_id).confirmed(generation))

    def touch(self, stream_id: str) -> None:
        """See :class:`~server.snapshot_store.SnapshotStore`."""
        for path in (self._path(stream_id, suffix) for suffix in (_SNAPSHOT, _FENCE)):
            with contextlib.suppress(FileNotFoundError):
                if not self._is_old(path):
                    os.utime(path)

    def drop(self, stream_id: str, generation: int) -> None:
        """See :class:`~server.snapshot_store.SnapshotStore`."""
        with self._locked():
            fence = self._fence(stream_id)
            if generation >= fence.generation:
                self._path(stream_id, _SNAPSHOT).unlink(missing_ok=True)
                self._set_fence(stream_id, Fence(generation, fence.oldest_generation, is_over=True))

    def sweep(self) -> int:
        """See :class:`~server.snapshot_store.SnapshotStore`."""
        swept = 0
        with self._locked():
            for path in self._directory.iterdir():
                if path.suffix in (_SNAPSHOT, _FENCE, _PART) and self._is_old(path):
                    path.unlink(missing_ok=True)
                    swept += path.suffix == _SNAPSHOT
        return swept

    def close(self) -> None:
        """See :class:`~server.snapshot_store.SnapshotStore`; there is nothing to let go of."""

    def _path(self, stream_id: str, suffix: str) -> Path:
        return self._directory / (checked_stream_id(stream_id) + suffix)

    def _is_old(self, path: Path) -> bool:
        try:
            return path.lstat().st_mtime + self._time_to_live_s < time.time()
        except FileNotFoundError:
            return True

    def _check_room(self, replaced: Path, size_bytes: int) -> None:
        used = 0
        with os.scandir(self._directory) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    used += entry.stat(follow_symlinks=False).st_size if entry.name != replaced.name else 0
        if used + size_bytes > self._max_bytes:
            raise OSError(f"{used} bytes of {self._max_bytes} are used already")

    def _fence(self, stream_id: str) -> Fence:
        text = self._read(self._path(stream_id, _FENCE), _FENCE_MAX_BYTES)
        if text is None:
            return Fence()
        try:
            return Fence(**json.loads(text))
        except (ValueError, TypeError) as cause:
            raise OSError(f"{stream_id}{_FENCE} is damaged") from cause

    def _set_fence(self, stream_id: str, fence: Fence) -> None:
        path = self._path(stream_id, _FENCE)
        part = path.with_name(f"{path.name}{_PART}")
        self._write(part, [json.dumps(asdict(fence)).encode()])
        part.replace(path)

    def _read(self, path: Path, max_bytes: int) -> bytes | None:
        """Read a regular file; a link, or anything else that someone put there, is not followed."""
        if self._is_old(path):
            return None
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > max_bytes:
                raise OSError(f"{path.name} is no regular file of at most {max_bytes} bytes")
            return file.read(max_bytes)

    @staticmethod
    def _write(path: Path, pieces: Sequence[bytes]) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags, 0o600), "wb", buffering=0) as file:
            for piece in pieces:
                rest = memoryview(piece)
                while rest:
                    rest = rest[file.write(rest) :]

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Exclude other threads and processes; the lock goes with the descriptor, also when the process dies."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._directory / "lock", flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)
