"""Snapshots of live streams: due, written beside the stream, refused by a fence, told when the store fails."""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
import time

import pytest

from codec_core.errors import SnapshotError
from server.checkpoints import Checkpoints
from server.codec_executor import CodecExecutor
from server.errors import SnapshotStoreError
from server.live_stream import LiveStream
from server.outbox import Outbox
from server.settings import Settings
from server.snapshot_store_directory import DirectoryStore
from server.stream_session import StreamSession
from server.stream_snapshot import Lineage
from server.stream_state import StreamState
from server.wire import Audio
from server.wire_settings import Offer, StreamSettings

FRAME = bytes(3840)


class Connection:
    """What carries a stream, as far as the stream can see."""

    def __init__(self) -> None:
        self.outbox = Outbox()
        self.gone = asyncio.Event()
        self.stream = None

    def end(self, error) -> None:
        raise error

    async def until(self, kind: str) -> dict:
        while True:
            message = await asyncio.wait_for(self.outbox.get(), 30)
            if isinstance(message, str) and json.loads(message)["type"] == kind:
                return json.loads(message)


class SlowStore(DirectoryStore):
    """Takes its time for every snapshot."""

    def __init__(self, *arguments) -> None:
        super().__init__(*arguments)
        self.may_go_on = threading.Event()
        self.has_begun = threading.Event()
        self.writing = 0

    def save(self, stream_id, generation, pieces) -> None:
        self.writing += 1
        self.has_begun.set()
        self.may_go_on.wait(30)
        super().save(stream_id, generation, pieces)


class House:
    """Checkpoints with one stream."""

    def __init__(self, model, store, interval_ms: int = 0) -> None:
        info = model.info
        offer = Offer(info.default_levels, info.levels, info.codebook_entries, info.frame_samples, 24_000, info.numerics)
        self.fenced: list[LiveStream] = []
        self.store, self.model, self.executor = store, model, CodecExecutor(model)
        self.checkpoints = Checkpoints(
            store,
            key=b"k" * 32,
            model_sha256=info.sha256,
            offer=offer,
            interval_ms=interval_ms,
            retry_after_ms=5,
            on_fenced=self.fenced.append,
        )
        self.connection = Connection()
        self.stream = self.open(self.connection)

    def open(self, connection: Connection) -> LiveStream:
        settings = StreamSettings("encode", 2, "s16le", 24_000, 1, "binary", "off", self.model.info.numerics)
        lineage = Lineage(secrets.token_hex(16), 0.0)
        stream = LiveStream(lineage, Settings(), self.checkpoints.between_steps, lambda _: None)
        stream.start(StreamSession(StreamState(settings), self.model, self.executor, stream.deliver))
        self.checkpoints.begin(stream)
        stream.attach(connection, [])
        return stream

    async def close(self, *streams: LiveStream) -> None:
        for stream in (self.stream, *streams):
            await stream.close()
            await self.checkpoints.settle(stream)
        await self.checkpoints.close()
        self.executor.close()


def directory(tmp_path, kind: type[DirectoryStore] = DirectoryStore, max_bytes: int = 1 << 30) -> DirectoryStore:
    return kind(tmp_path / "store", 60.0, 1 << 26, max_bytes)


async def test_a_stream_is_saved_as_it_goes_and_found_again(tiny_model, tmp_path):
    house = House(tiny_model, directory(tmp_path))
    await house.stream.accept(Audio(FRAME))
    told = await house.connection.until("checkpoint")
    assert (told["epoch"], told["position"], told["sequence"]) == (0, 1920, 1)
    snapshot = await house.checkpoints.load(house.stream.lineage.stream_id)
    assert snapshot.state.position == 1920
    assert snapshot.lineage == house.stream.lineage
    assert [answer.sequence for answer in snapshot.answers] == [0]
    assert house.checkpoints.is_stored(house.stream)
    await house.checkpoints.forget(house.stream, and_stored=True)
    assert await house.checkpoints.load(house.stream.lineage.stream_id) is None
    await house.close()


async def test_what_has_not_moved_is_not_saved_and_what_rests_is_saved_by_the_upkeep(tiny_model, tmp_path):
    house = House(tiny_model, directory(tmp_path), interval_ms=150)
    await house.checkpoints.keep_alive([house.stream])
    await house.stream.accept(Audio(FRAME))
    await house.stream.come_to_rest()
    assert house.checkpoints.saved == 0
    await asyncio.sleep(0.2)
    await house.checkpoints.keep_alive([house.stream])
    await house.connection.until("checkpoint")
    for _ in range(3):
        await asyncio.sleep(0.2)
        await house.checkpoints.keep_alive([house.stream])
    assert house.checkpoints.saved == 1
    await house.close()


async def test_a_slow_store_holds_up_no_stream_and_one_snapshot_is_made_at_a_time(tiny_model, tmp_path):
    store = directory(tmp_path, SlowStore)
    house = House(tiny_model, store)
    other_connection = Connection()
    other = house.open(other_connection)
    for stream, connection in ((house.stream, house.connection), (other, other_connection)):
        for _ in range(5):
            await stream.accept(Audio(FRAME))
            assert isinstance(await asyncio.wait_for(connection.outbox.get(), 30), bytes)
    assert store.writing == 1
    store.may_go_on.set()
    await house.connection.until("checkpoint")
    await house.close(other)


async def test_another_writer_is_noticed_and_nothing_of_its_is_overwritten(tiny_model, tmp_path):
    house = House(tiny_model, directory(tmp_path))
    stream_id = house.stream.lineage.stream_id
    await house.stream.accept(Audio(FRAME))
    await house.connection.until("checkpoint")
    other = directory(tmp_path)
    before = other.load(stream_id)
    assert other.claim(stream_id, 0, 0, held_here=False) == 1
    await house.stream.accept(Audio(FRAME))
    await house.connection.until("warning")
    assert house.fenced == [house.stream]
    assert other.load(stream_id) == before
    await house.checkpoints.forget(house.stream, and_stored=False)
    assert other.load(stream_id) == before
    await house.close()


async def test_a_claim_of_this_process_during_a_write_is_nobody_else_s(tiny_model, tmp_path):
    """A client comes back while its stream is being saved: neither does the stream end, nor is the snapshot lost."""
    store = directory(tmp_path, SlowStore)
    house = House(tiny_model, store)
    await house.stream.accept(Audio(FRAME))
    assert await asyncio.to_thread(store.has_begun.wait, 30)
    lineage = house.stream.lineage
    lineage.generation = await house.checkpoints.claim(lineage.stream_id, 0, 0, held_here=True)
    store.may_go_on.set()
    assert (await house.connection.until("checkpoint"))["position"] == 1920
    assert house.fenced == []
    assert (await house.checkpoints.load(lineage.stream_id)).lineage.generation == lineage.generation == 1
    await house.close()


async def test_a_stream_that_has_ended_meanwhile_is_not_saved(tiny_model, tmp_path):
    house = House(tiny_model, directory(tmp_path), interval_ms=1_000_000)
    await house.stream.close()
    assert not await house.checkpoints.save(house.stream)
    assert house.checkpoints.saved == 0
    await house.close()


async def test_a_store_that_fails_is_told_and_its_health_known(tiny_model, tmp_path):
    house = House(tiny_model, directory(tmp_path, max_bytes=10))
    await house.stream.accept(Audio(FRAME))
    assert (await house.connection.until("warning"))["code"] == "not_saved"
    assert "10" in house.checkpoints.problem
    (tmp_path / "store" / "lock").unlink()
    (tmp_path / "store" / "lock").mkdir()
    with pytest.raises(SnapshotStoreError) as refusal:
        await house.checkpoints.claim(house.stream.lineage.stream_id, 0, 0, held_here=True)
    assert refusal.value.retry_after_ms == 5
    await house.close()


async def test_a_damaged_snapshot_is_named(tiny_model, tmp_path):
    house = House(tiny_model, directory(tmp_path))
    house.store.save(house.stream.lineage.stream_id, 0, [b"no snapshot at all"])
    with pytest.raises(SnapshotError, match="size"):
        await house.checkpoints.load(house.stream.lineage.stream_id)
    await house.close()


async def test_without_a_store_nothing_is_done(tiny_model):
    house = House(tiny_model, None)
    await house.stream.accept(Audio(FRAME))
    await house.stream.come_to_rest()
    await house.stream.halt()
    assert not await house.checkpoints.save(house.stream)
    assert await house.checkpoints.load(house.stream.lineage.stream_id) is None
    assert await house.checkpoints.claim(house.stream.lineage.stream_id, 0, 4, held_here=True) == 5
    await house.checkpoints.keep_alive([house.stream])
    await house.close()


async def test_closing_waits_for_what_is_being_written(tiny_model, tmp_path):
    store = directory(tmp_path, SlowStore)
    house = House(tiny_model, store)
    await house.stream.accept(Audio(FRAME))
    assert await asyncio.to_thread(store.has_begun.wait, 30)
    threading.Timer(0.1, store.may_go_on.set).start()
    started_s = time.monotonic()
    await house.close()
    assert time.monotonic() - started_s > 0.05
    assert store.load(house.stream.lineage.stream_id) is not None
