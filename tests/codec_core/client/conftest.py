"""What a service says, made by hand; and a peer that says it over a real socket and cuts the line where a test wants it."""

from __future__ import annotations

import contextlib
import json
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve

READY: dict[str, Any] = {
    "type": "ready",
    "protocol": 1,
    "session": "s1",
    "model": {"name": "m", "sha256": "00", "weight_class": "f32", "numerics": "kyutai"},
    "settings": {"mode": "encode", "levels": 2},
    "codec": {"sample_rate": 24_000, "frame_samples": 1920, "frame_rate": 12.5, "codebook_entries": 32},
    "credit_frames": 25,
    "delay_samples": 1920,
    "limits": {"max_message_bytes": 65_536, "idle_timeout_ms": 60_000},
}
RESUMABLE: dict[str, Any] = {
    "resume_token": "t1",
    "resume_grace_ms": 5_000,
    "checkpoint_interval_ms": 5_000,
    "epoch": 0,
    "next_sequence": 0,
    "position": 0,
    "flushes": 0,
    "resumed": False,
}


def ready(**changes: Any) -> str:
    """The message of a service that resumes; ``resume_token=None`` for one that does not."""
    fields = READY | RESUMABLE | changes
    return json.dumps({name: value for name, value in fields.items() if value is not None})


def codes(sequence: int, *values: int, position: int | None = None) -> bytes:
    at = 1920 * sequence if position is None else position
    return struct.pack(f"<BBHIQ{len(values)}H", 1, 1, len(values), sequence, at, *values)


def flushed(frames: int, flushes: int = 1) -> str:
    counts = dict.fromkeys(("position", "samples", "received_samples", "sent_samples"), 1920 * frames)
    return json.dumps({"type": "flushed", "frames": frames, "padded_samples": 0, "flushes": flushes, **counts})


@pytest.fixture
def wire() -> Any:
    """The three makers above, by name."""

    class Wire:
        pass

    for make in (ready, codes, flushed):
        setattr(Wire, make.__name__, staticmethod(make))
    return Wire


Script = Callable[[ServerConnection], Awaitable[None]]


@pytest.fixture
def peer() -> Callable[..., Any]:
    """``async with peer(script, script, ...) as url``: the n-th connection is dealt with by the n-th script.

    There must be as many connections as scripts; ``afterwards`` deals with any that follow.
    """

    @contextlib.asynccontextmanager
    async def run(*scripts: Script, afterwards: Script | None = None) -> Any:
        waiting = iter(scripts)

        async def handle(connection: ServerConnection) -> None:
            script = next(waiting, afterwards)
            assert script is not None, "a connection that was not expected"
            await script(connection)

        options: Any = {"subprotocols": ["mimi.v1"], "compression": None, "close_timeout": 0.2, "ping_interval": None}
        async with serve(handle, "127.0.0.1", 0, **options) as server:
            yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        assert next(waiting, None) is None, "a connection that was expected was not made"

    return run
