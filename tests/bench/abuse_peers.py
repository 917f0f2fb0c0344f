"""Peers that abuse a service in every way at the same time, in a process of their own: abuse_peers.py PORT SECONDS SEED FRAMES

Prints, as JSON, what each of them did how often, and which refusals they were told of by name. They go on for so many seconds,
and until so many frames of garbage were sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

import numpy as np
from chaos_peers import message

HANDSHAKE: Final = (
    "GET /v1/stream?{} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
PATHS: Final = (
    "/v1/../../etc/passwd",
    "/web/../command.py",
    "/web/%2e%2e/settings.py",
    "/web/..%2f..%2fetc%2fpasswd",
    "/web//etc/passwd",
    "/..;/metrics",
    "/web/\\..\\settings.py",
    "/web/page.js%00.css",
    "//evil.example/%2e%2e",
    "/v1/info/..%5c",
    "/%2e%2e%2f%2e%2e%2fetc/shadow",
)
NAMES: Final = ("../../etc/passwd", "/etc/passwd", "default\0", "..\\..\\x", "%2e%2e", "$(id)", "a" * 500)
CROWD: Final = 260
FLOOD: Final = 100
BURST_FRAMES: Final = 500
CROWD_S: Final = 0.5
PAUSE_S: Final = 0.05
READ_BYTES: Final = 65_536
PATIENCE_S: Final = 10.0
PERSISTENCE_S: Final = 60.0
"""Beyond the time for all, for those who were not refused yet as they must be."""

Reader, Writer = asyncio.StreamReader, asyncio.StreamWriter


class Abuse:
    """What the peers share: where to, how long, and what came of it."""

    def __init__(self, port: int, seconds: float, seed: int, frames: int) -> None:
        self.port = port
        self.end_s = time.monotonic() + seconds
        self.last_s = self.end_s + PERSISTENCE_S
        self.rng = np.random.default_rng(seed)
        self.frames_left = frames
        self.done: Counter[str] = Counter()
        self.told: Counter[str] = Counter()

    @contextlib.asynccontextmanager
    async def connected(self):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            yield reader, writer
        finally:
            writer.transport.abort()

    async def open_stream(self, query: str, reader: Reader, writer: Writer) -> bool:
        """Shake hands; tell whether a stream was opened."""
        writer.write(HANDSHAKE.format(query).encode())
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_S)
        if head.startswith(b"HTTP/1.1 101"):
            return True
        self._hear(head)
        return False

    async def listen(self, reader: Reader) -> None:
        """Read to the end of the connection and note by which name it was refused."""
        heard = b""
        with contextlib.suppress(TimeoutError, OSError):
            async with asyncio.timeout(PATIENCE_S):
                while data := await reader.read(READ_BYTES):
                    heard = (heard + data)[-READ_BYTES:]
        self._hear(heard)

    def _hear(self, heard: bytes) -> None:
        found = re.search(rb'x-mimi-error: (\w+)|"type":"error","code":"(\w+)"', heard)
        if found:
            self.told[(found[1] or found[2]).decode()] += 1

    async def repeat(self, act: Callable[[Abuse], Awaitable[None]], code: str | None) -> None:
        """Do it again and again; at least until it was refused by the name that it must be refused by."""
        kind = act.__name__.replace("_", " ")
        while time.monotonic() < self.end_s or (time.monotonic() < self.last_s and not self._is_enough(act, kind, code)):
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
                await act(self)
                self.done[kind] += 1
            await asyncio.sleep(PAUSE_S)

    def _is_enough(self, act: object, kind: str, code: str | None) -> bool:
        if act is garbage_frames and self.frames_left > 0:
            return False
        return self.done[kind] > 0 and (code is None or self.told[code] > 0)


async def slow_handshake(abuse: Abuse) -> None:
    async with abuse.connected() as (reader, writer):
        listening = asyncio.create_task(abuse.listen(reader))
        for byte in HANDSHAKE.format("levels=1").encode():
            if listening.done():
                break
            writer.write(bytes([byte]))
            await asyncio.sleep(0.1)
        await listening


async def slow_body(abuse: Abuse) -> None:
    async with abuse.connected() as (reader, writer):
        writer.write(
            b"POST /v1/encode HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\nContent-Length: 90000\r\n\r\n"
        )
        listening = asyncio.create_task(abuse.listen(reader))
        while not listening.done():
            writer.write(b"\0")
            await asyncio.sleep(0.1)
        await listening


async def crowd(abuse: Abuse) -> None:
    """Connections that say nothing, more of them than there may be; and then a while for the others to get in."""
    async with contextlib.AsyncExitStack() as stack:
        readers = []
        for _ in range(CROWD):
            reader, _ = await stack.enter_async_context(abuse.connected())
            readers.append(reader)
        listening = [asyncio.create_task(abuse.listen(reader)) for reader in readers]
        await asyncio.wait(listening, timeout=CROWD_S)
    await asyncio.gather(*listening)
    await asyncio.sleep(2 * CROWD_S)


async def handshake_flood(abuse: Abuse) -> None:
    """Handshakes at once, more of them than one address may make; and then a while for the others to get in."""
    async with contextlib.AsyncExitStack() as stack:
        peers = [await stack.enter_async_context(abuse.connected()) for _ in range(FLOOD)]
        for _, writer in peers:
            writer.write(HANDSHAKE.format("levels=1").encode())
        heads = await asyncio.wait_for(asyncio.gather(*(reader.readuntil(b"\r\n\r\n") for reader, _ in peers)), PATIENCE_S)
        for head in heads:
            abuse._hear(head)
    await asyncio.sleep(4 * CROWD_S)


async def giant_message(abuse: Abuse) -> None:
    async with abuse.connected() as (reader, writer):
        if await abuse.open_stream("levels=1", reader, writer):
            writer.write(bytes([0x82, 0xFF]) + (1 << 40).to_bytes(8, "big") + bytes(100_000))
            await abuse.listen(reader)


async def giant_body(abuse: Abuse) -> None:
    head = b"POST /v1/encode HTTP/1.1\r\nHost: x\r\nContent-Type: audio/wav\r\nContent-Length: 99999999999999\r\n\r\n"
    async with abuse.connected() as (reader, writer):
        writer.write(head)
        abuse._hear(await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_S))


async def tiny_messages(abuse: Abuse) -> None:
    """Empty messages as fast as they go: legal, and read at their rate."""
    async with abuse.connected() as (reader, writer):
        if await abuse.open_stream("levels=1", reader, writer):
            writer.write(message(2, b"") * 20_000)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(writer.drain(), 1.0)


async def decompression(abuse: Abuse) -> None:
    bomb = gzip.compress(bytes(4 << 20))
    head = "POST /v1/encode HTTP/1.1\r\nHost: x\r\nContent-Type: audio/wav\r\nContent-Encoding: gzip\r\n"
    head += f"Content-Length: {len(bomb)}\r\n\r\n"
    async with abuse.connected() as (reader, writer):
        writer.write(head.encode() + bomb)
        abuse._hear(await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_S))
    async with abuse.connected() as (reader, writer):
        if await abuse.open_stream("levels=1", reader, writer):
            writer.write(bytes([0xC2]) + message(2, bomb[:100])[1:])
            await abuse.listen(reader)


async def garbage_frames(abuse: Abuse) -> None:
    """Well-formed lengths, everything else by chance; each connection dies of the first that is refused."""
    async with abuse.connected() as (reader, writer):
        if await abuse.open_stream("levels=1", reader, writer):
            heads = abuse.rng.integers(0, 256, BURST_FRAMES).tolist()
            frames = [message(head & 15, abuse.rng.bytes(head % 9)) for head in heads]
            writer.write(b"".join(bytes([head]) + frame[1:] for head, frame in zip(heads, frames, strict=True)))
            await abuse.listen(reader)
            abuse.frames_left -= BURST_FRAMES
            abuse.done["frames of garbage"] += BURST_FRAMES


async def noise_in_every_state(abuse: Abuse) -> None:
    noise = abuse.rng.bytes(int(abuse.rng.integers(1, 4_000)))
    hello, begun = message(1, b'{"type":"hello","levels":1}'), bytes([0x02]) + message(2, b"abc")[1:]
    for query, before in (
        (None, b""),
        ("", b""),
        ("", hello),
        ("levels=1", begun),
        ("levels=1", message(2, bytes(3840))),
        ("levels=1", message(8, b"")),
    ):
        async with abuse.connected() as (reader, writer):
            if query is None or await abuse.open_stream(query, reader, writer):
                writer.write(before + noise)
                await abuse.listen(reader)


async def replayed_tokens(abuse: Abuse) -> None:
    async with abuse.connected() as (reader, writer):
        if not await abuse.open_stream("levels=1", reader, writer):
            return
        ready = await asyncio.wait_for(reader.read(READ_BYTES), PATIENCE_S)
        writer.write(message(1, b'{"type":"close"}'))
        await abuse.listen(reader)
    token = re.search(rb'"resume_token":"([\w-]+)"', ready)
    for text in (token[1].decode() if token else "x", "A" * 200, "%00"):
        async with abuse.connected() as (reader, writer):
            if await abuse.open_stream(f"resume_token={text}", reader, writer):
                await abuse.listen(reader)


async def path_tricks(abuse: Abuse) -> None:
    for path in PATHS:
        async with abuse.connected() as (reader, writer):
            writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            answer = await asyncio.wait_for(reader.read(READ_BYTES), PATIENCE_S)
            assert not answer.startswith(b"HTTP/1.1 200"), path
            abuse._hear(answer)
    for name in NAMES:
        async with abuse.connected() as (reader, writer):
            if await abuse.open_stream("", reader, writer):
                writer.write(message(1, json.dumps({"type": "hello", "numerics": name}).encode()))
                await abuse.listen(reader)


KINDS: Final[dict[Callable[[Abuse], Awaitable[None]], str | None]] = {
    slow_handshake: "request_timeout",
    slow_body: "body_timeout",
    crowd: "connections",
    handshake_flood: "handshake_rate",
    giant_message: "message_too_big",
    # Refused as too large or, once its time is over, as too slow: whichever comes first.
    giant_body: None,
    tiny_messages: None,
    decompression: "unsupported_media",
    garbage_frames: None,
    noise_in_every_state: None,
    replayed_tokens: "resume_refused",
    path_tricks: "not_found",
}
"""What is done, and by which name it must be refused at least once."""


async def run(abuse: Abuse) -> None:
    await asyncio.gather(*(abuse.repeat(act, code) for act, code in KINDS.items()))


if __name__ == "__main__":
    abuse = Abuse(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    asyncio.run(run(abuse))
    missing = [code for code in KINDS.values() if code is not None and not abuse.told[code]]
    json.dump({"done": abuse.done, "told": abuse.told, "never_told": missing}, sys.stdout)
