"""Tokens and snapshots in the wrong hands, or broken; a store that fails."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

import numpy as np

from codec_core.clip import encode_clip

LEVELS = 8
SECRET = "correct horse battery staple"


def snapshots(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "store").glob("*.stream"))


def killed(service) -> None:
    service.process.kill()
    service.process.wait()


async def saved_stream(service, stream) -> str:
    """Make a stream that has a checkpoint, lose its connection, and return its token."""
    async with stream(service, "levels=1") as client:
        token = (await client.until("ready"))["resume_token"]
        await client.connection.send(bytes(40_000))
        await client.until("checkpoint")
        client.connection.transport.abort()
    return token


async def test_replaying_an_old_token_makes_no_second_copy(replica, stream, speech):
    first, second = replica(), replica()
    async with stream(first, "levels=1") as client:
        old = (await client.until("ready"))["resume_token"]
        await client.connection.send(speech[:20_000].tobytes())
        await client.until("checkpoint")
        client.connection.transport.abort()
    async with stream(second, f"resume_token={old}&last_sequence=9") as client:
        await client.until("ready")
        await client.send("ping")
        await client.until("pong")
        await asyncio.sleep(0.2)
        for service in (first, second):
            async with stream(service, f"resume_token={old}&last_sequence=9") as thief:
                assert await thief.closing() == (1008, "resume_refused")
        await client.send("ping")
        await client.until("pong")


async def test_a_closed_stream_cannot_be_revived_anywhere(replica, stream, speech, tmp_path):
    first, second = replica(), replica()
    async with stream(first, "levels=1") as client:
        token = (await client.until("ready"))["resume_token"]
        await client.connection.send(speech[:20_000].tobytes())
        await client.until("checkpoint")
        await client.send("close")
        await client.closing()
    for service in (first, second):
        async with stream(service, f"resume_token={token}") as thief:
            assert await thief.closing() == (1008, "resume_refused")
    assert not snapshots(tmp_path)


async def test_tokens_of_elsewhere_are_refused(replica, stream, monkeypatch):
    first = replica()
    token = await saved_stream(first, stream)
    monkeypatch.setenv("MIMI_SECRET", "another secret of some length")
    async with stream(replica(), f"resume_token={token}") as client:
        assert await client.closing() == (1008, "resume_refused")
    assert "signature" in client.texts[-1]["found"]
    monkeypatch.setenv("MIMI_SECRET", SECRET)
    async with stream(replica("--model", "default"), f"resume_token={token}") as client:
        assert await client.closing() == (1008, "resume_refused")
    assert client.texts[-1]["found"].startswith("model")


async def test_hostile_snapshots_are_refused(replica, stream, tmp_path, rng):
    first = replica()
    tokens = {damage: await saved_stream(first, stream) for damage in ("cut", "flipped", "empty", "longer", "link")}
    killed(first)
    for damage, token in tokens.items():
        path = tmp_path / "store" / f"{base64.urlsafe_b64decode(token + '==')[1:17].hex()}.stream"
        blob = bytearray(path.read_bytes())
        flipped = blob.copy()
        flipped[int(rng.integers(len(blob)))] ^= 1
        path.unlink()
        if damage == "link":
            path.symlink_to("/dev/zero")
        else:
            damaged = {"cut": blob[: len(blob) // 2], "flipped": flipped, "longer": blob + bytes(1 << 25), "empty": b""}
            path.write_bytes(damaged[damage])
    second = replica()
    for damage, token in tokens.items():
        async with stream(second, f"resume_token={token}") as client:
            closed = await client.closing()
        assert closed == ((1013, "snapshot_store") if damage in ("longer", "link") else (1007, "snapshot")), damage
    async with stream(second, "levels=1") as client:
        await client.until("ready")
    assert "Traceback" not in second.log


async def test_a_store_that_fails_is_told_and_hurts_no_stream(replica, stream, tiny_model, speech, tmp_path):
    service = replica("--max-snapshot-store-bytes", str(1 << 20))
    (tmp_path / "store" / "filler").write_bytes(bytes(1 << 20))
    async with stream(service, f"levels={LEVELS}") as client:
        await client.connection.send(speech[:30_000].tobytes())
        await asyncio.sleep(0.15)
        for start in range(30_000, len(speech), 10_000):
            await client.connection.send(speech[start : start + 10_000].tobytes())
        while (await client.until("warning"))["code"] != "not_saved":
            pass
        await client.send("flush")
        await client.until("flushed")
    assert np.array_equal(client.codes(), encode_clip(tiny_model, speech, LEVELS))
    assert not snapshots(tmp_path)
