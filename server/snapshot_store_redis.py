"""Snapshots in Redis, for replicas on several machines. Needs the extra ``redis``.

``mimi:stream:{ID}:snapshot`` is a snapshot, ``mimi:stream:{ID}:fence`` the fence beside it; both expire by themselves. What
must be one step for all processes is a script, which Redis runs alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Final

from codec_core.errors import SettingError, UnavailableError
from server.snapshot_store import FencedError, checked_stream_id

try:
    import redis
except ImportError:  # pragma: no cover
    redis = None  # type: ignore[assignment]

_TIMEOUT_S: Final = 5.0
_FENCED: Final = -1

_SAVE: Final = """
local fence = redis.call('HMGET', KEYS[2], 'generation', 'is_over')
if fence[2] == '1' or tonumber(ARGV[1]) < tonumber(fence[1] or 0) then return -1 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return 0
"""
_CLAIM: Final = """
local fence = redis.call('HMGET', KEYS[1], 'generation', 'oldest_generation', 'is_over')
local present, oldest, held = tonumber(fence[1] or 0), tonumber(fence[2] or 0), tonumber(ARGV[2])
if fence[3] == '1' or (ARGV[3] == '1' and held < present) or tonumber(ARGV[1]) < oldest then return -1 end
local claimed = math.max(present, held) + 1
redis.call('HSET', KEYS[1], 'generation', claimed)
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return claimed
"""
_CONFIRM: Final = """
local oldest = tonumber(redis.call('HGET', KEYS[1], 'oldest_generation') or 0)
redis.call('HSET', KEYS[1], 'oldest_generation', math.max(oldest, tonumber(ARGV[1])))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 0
"""
_DROP: Final = """
local present = tonumber(redis.call('HGET', KEYS[2], 'generation') or 0)
if tonumber(ARGV[1]) < present then return 0 end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[2], 'generation', ARGV[1], 'is_over', '1')
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 0
"""


class RedisStore:
    """A :class:`~server.snapshot_store.SnapshotStore` in one Redis database.

    Args:
        url: ``redis://[user:password@]host:port/database``, ``rediss://`` for TLS, or ``unix://path``.
        time_to_live_s: after which Redis forgets a snapshot.
        max_snapshot_bytes: larger ones are not read.

    Raises:
        SettingError: it cannot be reached.
        UnavailableError: the package ``redis`` is not installed.

    """

    def __init__(self, url: str, time_to_live_s: float, max_snapshot_bytes: int) -> None:
        if redis is None:
            raise UnavailableError("snapshot_store", "no package redis", "pip install 'mimi-server[redis]'")
        self._time_to_live_ms = int(time_to_live_s * 1000)
        self._max_snapshot_bytes = max_snapshot_bytes
        try:
            self._redis = redis.Redis.from_url(url, socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S)
            self._redis.ping()
        except (redis.RedisError, ValueError, OSError) as cause:
            raise SettingError("snapshot_store", f"{type(cause).__name__}", "a Redis that answers") from cause

    def save(self, stream_id: str, generation: int, pieces: Sequence[bytes]) -> None:
        """See :class:`~server.snapshot_store.SnapshotStore`."""
        keys = self._keys(stream_id)
        self._run(_SAVE, keys, generation, b"".join(pieces), self._time_to_live_ms)

    def load(self, stream_id: str) -> bytes | None:
        """See :class:`~server.snapshot_store.SnapshotStore`."""
        key = self._keys(stream_id)[0]
        with _as_os_error():
            size = self._redis.strlen(key)
            if size > self._max_snapshot_bytes:
                raise OSError(f"the snapshot has {size!r} bytes, more than {self._max_snapshot_bytes}")
            blob = self._redis.get(key)
        return None if blob is None else bytes(blob)  # type: ignore[arg-type]

    def claim(self, stream_id: str, token_generation: int, held_generation: int, *, held_here: bool) -> int:
        """See :class:`~server.snapshot_store.SnapshotStore`."""
        keys = self._keys(stream_id)[1:]
        return self._run(_CLAIM, keys, token_generation, held_generation, int(held_here), self._time_to_live_ms)

    def confirm(self, stream_id: str, generation: int) -> None:
        """See :class:`~server.snapshot_store.SnapshotStore`."""
        self._run(_CONFIRM, self._keys(stream_id)[1:], generation, self._time_to_live_ms)

    def touch(self, stream_id: str) -> None:
        """See :class:`~server.snapshot_store.SnapshotStore`."""
        with _as_os_error():
            for key in self._keys(stream_id):
                self._redis.pexpire(key, self._time_to_live_ms)

    def drop(self, stream_id: str, generation: int) -> None:
        """See :class:`~server.snapshot_store.SnapshotStore`."""
        self._run(_DROP, self._keys(stream_id), generation, self._time_to_live_ms)

    def sweep(self) -> int:
        """See :class:`~server.snapshot_store.SnapshotStore`; Redis does it by itself."""
        return 0

    def close(self) -> None:
        """See :class:`~server.snapshot_store.SnapshotStore`."""
        self._redis.close()

    def _run(self, script: str, keys: list[str], *values: int | bytes) -> int:
        with _as_os_error():
            answer = self._redis.eval(script, len(keys), *keys, *values)
        if answer == _FENCED:
            raise FencedError
        return int(answer)

    @staticmethod
    def _keys(stream_id: str) -> list[str]:
        # The braces keep both keys on one node of a cluster.
        name = f"mimi:stream:{{{checked_stream_id(stream_id)}}}"
        return [f"{name}:snapshot", f"{name}:fence"]


@contextlib.contextmanager
def _as_os_error() -> Iterator[None]:
    try:
        yield
    except redis.RedisError as cause:
        raise OSError(f"Redis: {type(cause).__name__}") from cause
