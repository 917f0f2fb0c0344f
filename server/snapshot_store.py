"""Where snapshots of streams are kept, and who may write them: what every store does, and how one is chosen.

A store also keeps, per stream, a fence: the generation that was claimed last. It makes one process at a time the stream's
writer, whatever copies of tokens, snapshots and streams are about.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from codec_core.errors import SettingError

_STREAM_ID = re.compile(r"[0-9a-f]{32}")


class FencedError(Exception):
    """Another process has claimed the stream since, or the stream is over. Never reaches the wire under this name."""


@dataclass(frozen=True)
class Fence:
    """The generation claimed last, the oldest one whose token is good, and whether the stream is over."""

    generation: int = 0
    oldest_generation: int = 0
    is_over: bool = False

    def check_write(self, generation: int) -> None:
        """Let only the present writer write.

        Raises:
            FencedError: it is another one.

        """
        if self.is_over or generation < self.generation:
            raise FencedError

    def claimed(self, token_generation: int, held_generation: int, *, held_here: bool) -> Fence:
        """Return the fence after a claim.

        Args:
            token_generation: that of the token presented.
            held_generation: that of the copy, in memory or snapshot, from which the stream would go on.
            held_here: whether it is a stream in memory, which an older copy than the fence's must not go on from.

        Raises:
            FencedError: the token or the copy is out of date, or the stream is over.

        """
        stale = held_here and held_generation < self.generation
        if self.is_over or stale or token_generation < self.oldest_generation:
            raise FencedError
        return Fence(max(self.generation, held_generation) + 1, self.oldest_generation)

    def confirmed(self, generation: int) -> Fence:
        """Return the fence once the client has shown that it holds the token of this generation."""
        return Fence(self.generation, max(self.oldest_generation, generation), self.is_over)


class SnapshotStore(Protocol):
    """What a store does. Calls take time and are made from threads; what fails otherwise raises ``OSError``."""

    def save(self, stream_id: str, generation: int, pieces: Sequence[bytes]) -> None:
        """Replace the stream's snapshot, whole or not at all, and begin its time to live anew.

        Raises:
            FencedError: the writer's generation is not the present one.

        """

    def load(self, stream_id: str) -> bytes | None:
        """Return the stream's snapshot, or ``None`` where there is none, or none any more."""

    def claim(self, stream_id: str, token_generation: int, held_generation: int, *, held_here: bool) -> int:
        """Become the stream's writer, at once for all processes; return the new generation. See :meth:`Fence.claimed`."""

    def confirm(self, stream_id: str, generation: int) -> None:
        """Make the tokens of older generations void."""

    def touch(self, stream_id: str) -> None:
        """Begin the snapshot's time to live anew."""

    def drop(self, stream_id: str, generation: int) -> None:
        """Delete the snapshot and leave word that the stream is over; no error where another process is the writer."""

    def sweep(self) -> int:
        """Delete what has outlived its time; return how many snapshots that were."""

    def close(self) -> None:
        """Let go of connections."""


def checked_stream_id(stream_id: str) -> str:
    """Return the identifier if it is one: 32 lower-case hexadecimal digits, which are safe as a file name and a key.

    Raises:
        ValueError: it is anything else.

    """
    if not _STREAM_ID.fullmatch(stream_id):
        raise ValueError(stream_id)
    return stream_id


def open_store(location: str, *, time_to_live_s: float, max_snapshot_bytes: int, max_bytes: int) -> SnapshotStore:
    """Open the store at a ``redis://``, ``rediss://`` or ``unix://`` URL, in a directory, or in the default directory.

    Args:
        location: URL or directory; empty for ``mimi-server/streams`` in the user's state directory.
        time_to_live_s: how long a snapshot lives after it was saved or touched.
        max_snapshot_bytes: larger ones are not read.
        max_bytes: most bytes in a directory; what would go beyond is not saved.

    Raises:
        SettingError: the place cannot be used, or is open to other users.
        UnavailableError: the package for it is not installed.

    """
    # Where they are used, so that neither is loaded where it is not.
    if location.startswith(("redis://", "rediss://", "unix://")):
        from server.snapshot_store_redis import RedisStore  # noqa: PLC0415

        return RedisStore(location, time_to_live_s, max_snapshot_bytes)
    if "://" in location:
        raise SettingError("snapshot_store", location.partition("://")[0], "a directory, or a URL of redis, rediss or unix")
    from server.snapshot_store_directory import DirectoryStore  # noqa: PLC0415

    return DirectoryStore(Path(location) if location else default_directory(), time_to_live_s, max_snapshot_bytes, max_bytes)


def default_directory() -> Path:
    """Return the directory that is used unless told otherwise."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "mimi-server" / "streams"
