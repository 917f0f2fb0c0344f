"""Snapshots of streams: whole, signed, checked before they are read, and readable by later versions of the service."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from codec_core import CodecModel
from codec_core.errors import SnapshotError
from server.codec_executor import CodecExecutor
from server.replay_window import Answer, ReplayWindow
from server.shared_secret import SharedSecret
from server.stream_session import StreamSession
from server.stream_snapshot import Lineage, StreamSnapshot, pack_stream, unpack_stream
from server.stream_state import StreamState
from server.wire import Audio, Flush
from server.wire_settings import Offer, StreamSettings

KEY = SharedSecret("correct horse battery staple").key("stream snapshot")
VERSION_1 = Path(__file__).parent / "fixtures" / "stream_snapshot_v1.npz"


def offer_of(model: CodecModel) -> Offer:
    info = model.info
    return Offer(info.default_levels, info.levels, info.codebook_entries, info.frame_samples, 24_000, info.numerics)


class Running:
    """A session, its executor, and what it answered."""

    def __init__(self, state: StreamState, model: CodecModel) -> None:
        self.executor = CodecExecutor(model)
        self.answers: list[Answer] = []
        self.window = ReplayWindow(100, 1 << 20)
        self.session = StreamSession(state, model, self.executor, self.send)

    async def send(self, answer: Answer) -> None:
        self.answers.append(answer)
        if answer.kept:
            self.window.add(answer)

    def snapshot(self) -> StreamSnapshot:
        lineage = Lineage("00112233445566778899aabbccddeeff", 1.5, 3, 2)
        return StreamSnapshot(lineage, self.session.capture(), self.window.content(), self.window.freed)

    def close(self) -> None:
        self.session.close()
        self.executor.close()


@pytest.fixture
def settings(tiny_model) -> StreamSettings:
    return StreamSettings("echo", 3, "f32le", 24_000, 1, "binary", "on", tiny_model.info.numerics)


@pytest.fixture
async def running(tiny_model, settings, pcm):
    running = Running(StreamState(settings), tiny_model)
    await running.session.handle(Audio(pcm[:9001].tobytes()))
    yield running
    running.close()


async def test_a_session_goes_on_from_it_bit_for_bit(tiny_model, running, pcm):
    blob = b"".join(pack_stream(running.snapshot(), tiny_model.info.sha256, KEY))
    again = unpack_stream(blob, tiny_model.info.sha256, offer_of(tiny_model), KEY)
    assert again.lineage == running.snapshot().lineage
    assert again.answers == running.answers
    assert again.state.position == 9001
    other = Running(again.state, tiny_model)
    for one in (running, other):
        one.answers.clear()
        await one.session.handle(Audio(pcm[9001:30_000].tobytes()))
        await one.session.handle(Flush())
    other.close()
    assert other.answers == running.answers
    assert len(running.answers) > 20


@pytest.mark.parametrize("mode", ["encode", "decode"])
async def test_a_stream_that_has_not_begun_can_be_saved_too(tiny_model, settings, mode):
    running = Running(StreamState(replace(settings, mode=mode, echo_codes="off")), tiny_model)
    blob = b"".join(pack_stream(running.snapshot(), tiny_model.info.sha256, KEY))
    state = unpack_stream(blob, tiny_model.info.sha256, offer_of(tiny_model), KEY).state
    assert (bool(state.encoder), bool(state.decoder)) == (mode == "encode", mode == "decode")
    assert state.counters == running.session.counters
    running.close()


async def test_every_cut_and_every_changed_byte_shows(tiny_model, running, rng):
    """Those of the codec's state show where it is restored, the others at once; none gets further."""
    offer, sha256 = offer_of(tiny_model), tiny_model.info.sha256
    blob = b"".join(pack_stream(running.snapshot(), sha256, KEY))
    for cut in [*range(120), *rng.integers(120, len(blob), 60)]:
        with pytest.raises(SnapshotError):
            unpack_stream(blob[:cut], sha256, offer, KEY)
    changed = bytearray(blob)
    for place in [*range(400), *rng.integers(400, len(blob), 300), *range(len(blob) - 100, len(blob))]:
        changed[place] ^= 1 << int(rng.integers(8))
        with pytest.raises(SnapshotError):
            Running(unpack_stream(bytes(changed), sha256, offer, KEY).state, tiny_model)
        changed[place] = blob[place]
    with pytest.raises(SnapshotError):
        unpack_stream(blob + b"\0", sha256, offer, KEY)


async def test_sizes_that_lie_are_refused_before_anything_is_read(tiny_model, running):
    """ANCHORS CVE-2026-43629: a snapshot is hostile input."""
    blob = bytearray(b"".join(pack_stream(running.snapshot(), tiny_model.info.sha256, KEY)))
    for field in range(12, 64, 4):
        lying = blob.copy()
        lying[field : field + 4] = b"\xff\xff\xff\x7f"
        with pytest.raises(SnapshotError, match="size"):
            unpack_stream(bytes(lying), tiny_model.info.sha256, offer_of(tiny_model), KEY)


async def test_foreign_ones_are_refused_by_what_is_foreign(tiny_model, running):
    offer, sha256 = offer_of(tiny_model), tiny_model.info.sha256
    snapshot = running.snapshot()
    blob = b"".join(pack_stream(snapshot, sha256, KEY))
    with pytest.raises(SnapshotError, match="signature"):
        unpack_stream(blob, sha256, offer, SharedSecret("another secret of some length").key("stream snapshot"))
    with pytest.raises(SnapshotError, match="model"):
        unpack_stream(blob, "00" * 32, offer, KEY)
    with pytest.raises(SnapshotError, match="numerics"):
        unpack_stream(blob, sha256, replace(offer, numerics="ggml"), KEY)
    for state in (replace(snapshot.state, decoder=b""), replace(snapshot.state, encoder=snapshot.state.decoder)):
        odd = b"".join(pack_stream(replace(snapshot, state=state), sha256, KEY))
        with pytest.raises(SnapshotError, match="decoder"):
            Running(unpack_stream(odd, sha256, offer, KEY).state, tiny_model)


async def test_snapshots_of_version_1_load_and_go_on(tiny_model):
    """Made by the first release that made any; whatever later ones change, they must read it."""
    with np.load(VERSION_1) as saved:
        blob, texts, samples = saved["blob"].tobytes(), saved["texts"], saved["samples"]
    pcm = (np.random.default_rng(1).uniform(-0.5, 0.5, 48_000) * 32_767).astype("<i2")
    snapshot = unpack_stream(blob, tiny_model.info.sha256, offer_of(tiny_model), KEY)
    assert snapshot.lineage == Lineage("00112233445566778899aabbccddeeff", 1_700_000_000.5, 3, 2)
    assert (snapshot.state.position, snapshot.freed) == (33_000, (0, 9))
    running = Running(snapshot.state, tiny_model)
    await running.session.handle(Audio(pcm[33_000:].tobytes()))
    await running.session.handle(Flush())
    running.close()
    messages = [answer.message for answer in running.answers if answer.kept]
    made = np.frombuffer(b"".join(message[16:] for message in messages if isinstance(message, bytes)), "<i2")
    assert [json.loads(message) for message in messages if isinstance(message, str)] == [json.loads(text) for text in texts]
    # The resampler was primed anew.
    assert np.abs(made.astype(int) - samples).max() <= 1
