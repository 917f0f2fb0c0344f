"""Both stores keep the same promises: one writer, whole snapshots, and an end for everything."""

from __future__ import annotations

import contextlib
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codec_core.errors import SettingError
from server.snapshot_store import Fence, FencedError, SnapshotStore, default_directory, open_store
from server.snapshot_store_directory import DirectoryStore

Open = Callable[..., SnapshotStore]


@pytest.fixture(params=["directory", "redis"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Open the same store as often as wanted, as several processes would."""
    location = str(tmp_path / "store") if request.param == "directory" else request.getfixturevalue("redis_url")
    with contextlib.ExitStack() as stack:

        def opened(time_to_live_s: float = 60, max_snapshot_bytes: int = 10_000) -> SnapshotStore:
            store = open_store(
                location, time_to_live_s=time_to_live_s, max_snapshot_bytes=max_snapshot_bytes, max_bytes=100_000
            )
            stack.callback(store.close)
            return store

        yield opened


@pytest.fixture
def stream_id() -> str:
    return secrets.token_hex(16)


def test_what_is_saved_is_loaded_by_another_process(opened, stream_id):
    opened().save(stream_id, 0, [b"one ", b"", b"snapshot"])
    assert opened().load(stream_id) == b"one snapshot"
    opened().save(stream_id, 0, [b"next"])
    assert opened().load(stream_id) == b"next"
    assert opened().load(secrets.token_hex(16)) is None


def test_who_claims_shuts_the_one_before_out(opened, stream_id):
    first, second = opened(), opened()
    first.save(stream_id, 0, [b"first"])
    assert second.claim(stream_id, 0, 0, held_here=False) == 1
    with pytest.raises(FencedError):
        first.save(stream_id, 0, [b"late"])
    with pytest.raises(FencedError):
        first.claim(stream_id, 1, 0, held_here=True)
    assert second.load(stream_id) == b"first"
    second.save(stream_id, 1, [b"second"])
    assert first.claim(stream_id, 0, 0, held_here=False) == 2


def test_a_confirmed_generation_makes_older_tokens_void(opened, stream_id):
    store = opened()
    store.save(stream_id, 0, [b"x"])
    assert store.claim(stream_id, 0, 0, held_here=True) == 1
    assert store.claim(stream_id, 0, 1, held_here=True) == 2
    store.confirm(stream_id, 2)
    for token in (0, 1):
        with pytest.raises(FencedError):
            store.claim(stream_id, token, 2, held_here=False)
    assert store.claim(stream_id, 2, 2, held_here=False) == 3


def test_claims_at_the_same_time_get_different_generations(opened, stream_id):
    stores, claimed = [opened() for _ in range(8)], []

    def claim(store: SnapshotStore) -> None:
        claimed.extend(store.claim(stream_id, 0, 0, held_here=False) for _ in range(10))

    threads = [threading.Thread(target=claim, args=[store]) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(claimed) == list(range(1, 81))


def test_a_stream_that_is_over_stays_over(opened, stream_id):
    store = opened()
    store.save(stream_id, 4, [b"x"])
    store.drop(stream_id, 4)
    assert store.load(stream_id) is None
    with pytest.raises(FencedError):
        store.save(stream_id, 9, [b"y"])
    with pytest.raises(FencedError):
        store.claim(stream_id, 9, 9, held_here=False)


def test_only_the_writer_ends_a_stream(opened, stream_id):
    first, second = opened(), opened()
    first.save(stream_id, 0, [b"x"])
    second.claim(stream_id, 0, 0, held_here=False)
    first.drop(stream_id, 0)
    assert second.load(stream_id) == b"x"


def test_snapshots_outlive_their_time_only_when_touched(opened):
    store = opened(time_to_live_s=0.5)
    kept, gone = secrets.token_hex(16), secrets.token_hex(16)
    for stream_id in (kept, gone):
        store.save(stream_id, 0, [b"x"])
    for _ in range(4):
        time.sleep(0.2)
        store.touch(kept)
    assert store.load(kept) == b"x"
    assert store.load(gone) is None
    store.touch(gone)
    store.sweep()
    assert store.load(gone) is None


def test_snapshots_that_are_too_large_are_not_read(opened, stream_id):
    opened().save(stream_id, 0, [bytes(20_000)])
    with pytest.raises(OSError, match="10000"):
        opened().load(stream_id)


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "0" * 31, "0" * 33, "A" * 32, "g" * 32, "0" * 31 + "\n"])
def test_names_that_are_none_reach_no_store(opened, name):
    store = opened()
    calls = [
        lambda: store.load(name),
        lambda: store.save(name, 0, [b"x"]),
        lambda: store.claim(name, 0, 0, held_here=False),
        lambda: store.confirm(name, 0),
        lambda: store.touch(name),
        lambda: store.drop(name, 0),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=re.escape(name) or "^$"):
            call()


def test_a_redis_that_is_gone_is_an_error_of_the_system(redis_url, stream_id):
    with pytest.raises(SettingError, match="snapshot_store"):
        open_store("unix:///nowhere/at/all", time_to_live_s=1, max_snapshot_bytes=1, max_bytes=1)
    store = open_store(redis_url, time_to_live_s=1, max_snapshot_bytes=1, max_bytes=1)
    import redis  # noqa: PLC0415

    # Written past the store: what another program may have left there.
    redis.Redis.from_url(redis_url).set(f"mimi:stream:{{{stream_id}}}:fence", "no hash")
    for call in (lambda: store.claim(stream_id, 0, 0, held_here=False), lambda: store.save(stream_id, 0, [b"x"])):
        with pytest.raises(OSError, match="Redis"):
            call()
    store.close()


def directory_store(path: Path, max_bytes: int = 100_000, time_to_live_s: float = 60) -> DirectoryStore:
    return DirectoryStore(path, time_to_live_s, 10_000, max_bytes)


def test_a_directory_is_for_its_owner_alone(tmp_path, stream_id):
    store = directory_store(tmp_path / "deep" / "store")
    store.save(stream_id, 0, [b"x"])
    store.claim(stream_id, 0, 0, held_here=False)
    assert (tmp_path / "deep" / "store").stat().st_mode & 0o777 == 0o700
    files = list((tmp_path / "deep" / "store").iterdir())
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert {path.suffix for path in files} == {".stream", ".fence", ""}


def test_a_directory_that_others_may_enter_is_refused(tmp_path):
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "open").chmod(0o755)
    with pytest.raises(SettingError, match=r"0755.*chmod"):
        directory_store(tmp_path / "open")
    (tmp_path / "file").write_text("x")
    with pytest.raises(SettingError, match="snapshot_store"):
        directory_store(tmp_path / "file")


def test_a_directory_takes_no_more_than_it_may(tmp_path):
    store = directory_store(tmp_path / "store", max_bytes=1000)
    first, second = secrets.token_hex(16), secrets.token_hex(16)
    store.save(first, 0, [bytes(600)])
    with pytest.raises(OSError, match="1000"):
        store.save(second, 0, [bytes(600)])
    store.save(first, 0, [bytes(700)])
    store.save(second, 0, [bytes(200)])
    assert len(list((tmp_path / "store").iterdir())) == 3


def test_what_was_left_half_written_is_swept_away(tmp_path, stream_id):
    store = directory_store(tmp_path / "store", time_to_live_s=0.1)
    store.save(stream_id, 0, [b"x"])
    (tmp_path / "store" / f"{stream_id}.stream.dead.part").write_bytes(b"half")
    time.sleep(0.15)
    (tmp_path / "store" / "of another program").write_text("stays")
    assert store.sweep() == 1
    assert sorted(path.name for path in (tmp_path / "store").iterdir()) == ["lock", "of another program"]


def test_a_fence_that_is_damaged_is_an_error_of_the_system(tmp_path, stream_id):
    store = directory_store(tmp_path / "store")
    for text in ("{", "[]", '{"colour": 1}', "\xff", "x" * 5000):
        (tmp_path / "store" / f"{stream_id}.fence").write_text(text)
        with pytest.raises(OSError, match=stream_id):
            store.save(stream_id, 0, [b"x"])


def test_the_place_is_chosen_by_its_name(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    store = open_store("", time_to_live_s=1, max_snapshot_bytes=1, max_bytes=1)
    assert isinstance(store, DirectoryStore)
    assert default_directory() == tmp_path / "state" / "mimi-server" / "streams"
    assert default_directory().is_dir()
    with pytest.raises(SettingError, match="redis"):
        open_store("https://example.org", time_to_live_s=1, max_snapshot_bytes=1, max_bytes=1)


def test_a_fence_lets_nobody_back_in():
    fence = Fence(5, 3)
    assert fence.claimed(3, 5, held_here=True) == Fence(6, 3)
    assert fence.claimed(4, 2, held_here=False) == Fence(6, 3)
    for refused in ((2, 5, True), (4, 4, True), (2, 9, False)):
        with pytest.raises(FencedError):
            fence.claimed(refused[0], refused[1], held_here=refused[2])
    assert fence.confirmed(4) == Fence(5, 4)
    assert fence.confirmed(1) == fence
