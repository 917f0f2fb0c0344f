"""Peers that nobody wants: garbage before and after the handshake, readers that do not read, the dead who stay connected."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from typing import Final

import numpy as np

HOLD_S: Final = 6.0
"""How long a peer keeps a connection open from which it neither reads nor goes."""

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def visit(port: int, rng: np.random.Generator) -> str:
    """Come, misbehave in one way, and go; returns which."""
    kind = list(KINDS)[int(rng.integers(len(KINDS)))]
    writer: asyncio.StreamWriter | None = None
    with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
        async with asyncio.timeout(2 * HOLD_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            await KINDS[kind]((reader, writer), rng)
    if writer is not None:
        writer.transport.abort()
    return kind


def message(opcode: int, payload: bytes, *, masked: bool = True) -> bytes:
    """Frame a WebSocket message; masked with zeros, which changes nothing."""
    size = len(payload)
    length = bytes([size]) if size < 126 else b"\x7e" + size.to_bytes(2, "big")
    head = bytes([0x80 | opcode, length[0] | (0x80 if masked else 0)]) + length[1:]
    return head + (bytes(4) if masked else b"") + payload


async def _shake_hands(connection: Connection, query: str) -> None:
    reader, writer = connection
    key = "AAAAAAAAAAAAAAAAAAAAAA=="
    writer.write(
        f"GET /v1/stream?{query} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    await reader.readuntil(b"\r\n\r\n")


async def _noise(connection: Connection, rng: np.random.Generator) -> None:
    connection[1].write(rng.bytes(int(rng.integers(1, 5000))))
    await connection[0].read(1000)


async def _broken_frames(connection: Connection, rng: np.random.Generator) -> None:
    await _shake_hands(connection, "levels=1")
    connection[1].write(rng.bytes(int(rng.integers(2, 3000))))
    await connection[0].read(10_000)


async def _unmasked(connection: Connection, _: np.random.Generator) -> None:
    await _shake_hands(connection, "levels=1")
    connection[1].write(message(2, bytes(3840), masked=False))
    await connection[0].read(10_000)


async def _wrong_texts(connection: Connection, rng: np.random.Generator) -> None:
    await _shake_hands(connection, "")
    texts = (
        '{"type":"resume","token":"' + "A" * int(rng.integers(1, 2000)) + '","last_sequence":7}',
        json.dumps({"type": "hello", "levels": int(rng.integers(-5, 50)), "mode": "decode"}),
        "[" * int(rng.integers(1, 60_000)),
        '{"type":"flush"}',
    )
    connection[1].write(message(1, texts[int(rng.integers(len(texts)))].encode()))
    await connection[0].read(10_000)


async def _too_big(connection: Connection, _: np.random.Generator) -> None:
    await _shake_hands(connection, "levels=1")
    connection[1].write(bytes([0x82, 0xFF]) + (1 << 40).to_bytes(8, "big") + bytes(4) + bytes(100_000))
    await connection[1].drain()
    await connection[0].read(10_000)


async def _reads_nothing(connection: Connection, rng: np.random.Generator) -> None:
    await _shake_hands(connection, "mode=decode&levels=1&format=f32le&sample_rate=96000")
    connection[1].transport.pause_reading()  # type: ignore[attr-defined]
    for _ in range(20):
        connection[1].write(message(2, bytes(2 * int(rng.integers(1, 500)))))
        await connection[1].drain()
        await asyncio.sleep(HOLD_S / 20)


async def _stays_dead(connection: Connection, _: np.random.Generator) -> None:
    await _shake_hands(connection, "levels=2")
    connection[1].write(message(2, bytes(3840 * 3)))
    connection[1].transport.pause_reading()  # type: ignore[attr-defined]
    await asyncio.sleep(HOLD_S)


async def _leaves_at_once(connection: Connection, _: np.random.Generator) -> None:
    await _shake_hands(connection, "mode=echo&levels=2")
    connection[1].write(message(2, bytes(3840 * 5)))


KINDS: Final[dict[str, Callable[[Connection, np.random.Generator], Awaitable[None]]]] = {
    "noise": _noise,
    "broken frames": _broken_frames,
    "unmasked": _unmasked,
    "wrong texts": _wrong_texts,
    "too big": _too_big,
    "reads nothing": _reads_nothing,
    "stays dead": _stays_dead,
    "leaves at once": _leaves_at_once,
}
