"""A process goes down or dies, the stream goes on in another one, or in the same one started again."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from pathlib import Path

import httpx
import numpy as np
import pytest
import websockets

from codec_core.clip import decode_clip, encode_clip
from codec_core.pcm import PcmIntake

FRAME_SAMPLES = 1920
LEVELS = 8


def snapshots(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "store").glob("*.stream"))


async def checkpointed(client, connection, least_position: int) -> dict:
    """Receive up to a checkpoint of at least this position."""
    while True:
        checkpoint = await client.until(connection, "checkpoint")
        if checkpoint["position"] >= least_position:
            return checkpoint


async def run_past_a_checkpoint(client, connection, piece: int) -> None:
    """Send pieces until a checkpoint has come, then more, and receive frames that are later than the checkpoint."""
    checkpoint = asyncio.create_task(client.until(connection, "checkpoint"))
    sent = client.readies[-1]["position"]
    spare = None
    while spare != 0:
        await connection.send(client.data[sent * client.unit_bytes : (sent + piece) * client.unit_bytes])
        sent += piece
        await asyncio.sleep(0.03)
        if checkpoint.done():
            spare = 3 if spare is None else spare - 1
    await client.until_frame(connection, (await checkpoint)["sequence"] + 1)


def killed(service) -> None:
    service.process.kill()
    service.process.wait()


async def test_a_drained_stream_goes_on_in_another_process(replica, resuming, tiny_model, speech, tmp_path):
    client = resuming(f"levels={LEVELS}", speech.tobytes())
    first = replica()
    connection = await client.open(first)
    await client.send(connection, 20_001)
    await client.until_frame(connection, 3)
    first.process.send_signal(signal.SIGTERM)
    goaway = await client.until(connection, "goaway")
    assert goaway["resume_token"] == client.token
    assert (await client.until(connection, "error"))["code"] == "draining"
    await connection.wait_closed()
    assert connection.close_code == 1012
    assert first.process.wait(timeout=60) == 0
    assert len(snapshots(tmp_path)) == 1
    second = replica()
    await client.finish(second)
    assert np.array_equal(client.codes(), encode_clip(tiny_model, speech, LEVELS))
    assert not snapshots(tmp_path)
    assert "Traceback" not in first.log + second.log


async def test_a_parked_stream_is_saved_when_its_process_goes_down(replica, resuming, tiny_model, speech):
    codes = encode_clip(tiny_model, speech, LEVELS)
    client = resuming(f"mode=decode&levels={LEVELS}&format=f32le", codes.T.astype("<u2").tobytes(), 2 * LEVELS)
    first = replica()
    await client.travel(first, 5)
    assert first.stop() == 0
    second = replica()
    await client.travel(second, 20)
    assert second.stop() == 0
    await client.finish(replica())
    assert np.array_equal(client.pcm("<f4"), decode_clip(tiny_model, codes))


@pytest.mark.parametrize("mode", ["encode", "decode", "echo"])
async def test_after_kill_9_a_client_goes_on_from_the_last_checkpoint(replica, resuming, tiny_model, speech, mode):
    codes = encode_clip(tiny_model, speech, LEVELS)
    if mode == "decode":
        client = resuming(f"mode=decode&levels={LEVELS}&format=f32le", codes.T.astype("<u2").tobytes(), 2 * LEVELS)
    else:
        client = resuming(f"mode={mode}&levels={LEVELS}&format=f32le", (speech / 32_768).astype("<f4").tobytes(), 4)
    service = replica()
    for _ in range(2 if mode == "encode" else 1):
        connection = await client.open(service)
        await run_past_a_checkpoint(client, connection, 1 if mode == "decode" else FRAME_SAMPLES)
        killed(service)
        await connection.wait_closed()
        service = replica()
    await client.finish(service)
    if mode == "encode":
        assert np.array_equal(client.codes(), codes)
    else:
        assert np.array_equal(client.pcm("<f4"), decode_clip(tiny_model, codes))
    assert all(ready["position"] for ready in client.readies[1:])


async def test_a_crash_after_a_reset_begins_the_clients_epoch_anew(replica, stream, tiny_model, speech):
    service = replica("--checkpoint-interval-ms", "1")
    async with stream(service, f"levels={LEVELS}") as client:
        token = (await client.until("ready"))["resume_token"]
        await client.connection.send(speech[: 4 * FRAME_SAMPLES].tobytes())
        await client.until("checkpoint")
        # Before the client closes, which would be the end of the stream.
        killed(service)
    service = replica()
    # The client's reset was answered after the last checkpoint, as were two frames of the new epoch.
    async with stream(service) as client:
        await client.send("resume", token=token, last_sequence=1, epoch=1)
        ready = await client.until("ready")
        assert (ready["epoch"], ready["position"], ready["next_sequence"]) == (1, 0, 2)
        await client.connection.send(speech[: 5 * FRAME_SAMPLES].tobytes())
        await client.send("flush")
        await client.until("flushed")
        assert [header.sequence for header, _ in client.frames] == [2, 3, 4]
        assert np.array_equal(client.codes(), encode_clip(tiny_model, speech[: 5 * FRAME_SAMPLES], LEVELS)[:, 2:])


@pytest.mark.parametrize("audio", [("encode", 44_100), ("decode", 48_000)])
async def test_another_process_reprimes_the_resampler_and_says_so(replica, resuming, tiny_model, speech, audio):
    mode, rate = audio
    query = f"mode={mode}&levels={LEVELS}&format=f32le&sample_rate={rate}"
    codes = encode_clip(tiny_model, speech, LEVELS)
    if mode == "decode":
        client = resuming(query, codes.T.astype("<u2").tobytes(), 2 * LEVELS)
    else:
        client = resuming(query, (speech / 32_768).astype("<f4").tobytes(), 4)
    first = replica()
    await client.travel(first, 12)
    assert first.stop() == 0
    second = replica()
    flushed = await client.finish(second)
    assert client.readies[1]["resampler"] == "reprimed"
    whole = resuming(query, client.data, client.unit_bytes)
    assert flushed == await whole.finish(second)
    if mode == "encode":
        intake = PcmIntake(rate, 1, "float32")
        samples = np.frombuffer(client.data, "<f4")
        expected = encode_clip(tiny_model, np.concatenate([intake.push(samples), intake.flush()]), LEVELS)
        # Another resampler's samples differ by rounding: that shows in few codes, if in any.
        assert np.mean(client.codes() == expected) > 0.98
    else:
        assert [len(one) for one in client.payloads] == [len(one) for one in whole.payloads]
        assert np.allclose(client.pcm("<f4"), whole.pcm("<f4"), rtol=0, atol=1e-5)


async def test_another_replica_takes_over_and_the_first_lets_go(replica, resuming, tiny_model, speech):
    """Single writer: the replica that a network partition left behind can neither go on nor overwrite."""
    first, second = replica(), replica()
    client = resuming(f"levels={LEVELS}", speech.tobytes())
    connection = await client.open(first)
    await client.send(connection, 20_000)
    await checkpointed(client, connection, 1)
    ahead = await client.open(second)
    await client.send(ahead, 40_000)
    await client.until_frame(ahead, 15)
    # The first one's next snapshot meets the fence, while its client's old connection still speaks.
    ended = asyncio.create_task(connection.wait_closed())
    while not ended.done():
        with contextlib.suppress(websockets.ConnectionClosed):
            await connection.send(speech[:4000].tobytes())
            await asyncio.wait_for(connection.recv(), 1)
    assert (connection.close_code, connection.close_reason) == (1008, "taken_over")
    await client.lose(ahead)
    await client.finish(second)
    assert np.array_equal(client.codes(), encode_clip(tiny_model, speech, LEVELS))


async def test_a_stream_that_moved_on_is_not_found_where_it_was(replica, resuming, speech, tiny_model):
    first, second = replica(), replica()
    client = resuming(f"levels={LEVELS}", speech.tobytes())
    connection = await client.open(first)
    await client.send(connection, 20_000)
    await checkpointed(client, connection, 1)
    await client.lose(connection)
    await client.travel(second, 12, end=40_000)
    assert second.stop() == 0
    # The first still has it parked, out of date by now; it must take the newer one from the store.
    await client.finish(first)
    assert np.array_equal(client.codes(), encode_clip(tiny_model, speech, LEVELS))


async def test_many_streams_drain_and_go_on(replica, resuming, tiny_model, speech):
    first = replica()
    clients = [resuming(f"levels={LEVELS}", np.roll(speech, 997 * index).tobytes()) for index in range(12)]
    connections = [await client.open(first) for client in clients]
    for client, connection in zip(clients, connections, strict=True):
        await client.send(connection, 20_000)
    first.process.send_signal(signal.SIGTERM)
    for client, connection in zip(clients, connections, strict=True):
        await client.until(connection, "error")
        await connection.wait_closed()
        assert connection.close_reason == "draining"
    assert first.process.wait(timeout=60) == 0
    second = replica()
    await asyncio.gather(*(client.finish(second) for client in clients))
    for index, client in enumerate(clients):
        assert np.array_equal(client.codes(), encode_clip(tiny_model, np.roll(speech, 997 * index), LEVELS))
    async with httpx.AsyncClient(base_url=second.url) as http:
        load = (await http.get("/v1/info")).json()["load"]
    assert (load["parked"], load["streams"]) == (0, 0)


async def test_redis_keeps_streams_as_a_directory_does(replica, resuming, tiny_model, speech, redis_url):
    client = resuming(f"levels={LEVELS}", speech.tobytes())
    service = replica("--snapshot-store", redis_url)
    connection = await client.open(service)
    await run_past_a_checkpoint(client, connection, FRAME_SAMPLES)
    killed(service)
    await connection.wait_closed()
    service = replica("--snapshot-store", redis_url)
    await client.travel(service, 30)
    assert service.stop() == 0
    await client.finish(replica("--snapshot-store", redis_url))
    assert np.array_equal(client.codes(), encode_clip(tiny_model, speech, LEVELS))
