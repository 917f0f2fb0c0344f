"""The service as a process of its own, with a small synthetic model, and a client that speaks the wire."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import websockets
from websockets.asyncio.client import ClientConnection, connect

from server.wire_messages import FrameHeader, unpack_frame

START_TIMEOUT_S = 120
PATIENCE = ("--lag-limit-ms", "600000", "--lag-warning-ms", "600000", "--admission", "count")
"""A machine that stands still for a while makes answers late; tests of lateness and of refusals for it say so themselves."""
SECRET = "correct horse battery staple"
ANSWER_TIMEOUT_S = 60
"""So that what never comes fails a test instead of holding it up."""


@dataclass
class RunningService:
    """One service process."""

    process: subprocess.Popen[bytes]
    url: str
    log_path: Path

    def stream_url(self, query: str = "") -> str:
        return f"ws{self.url[4:]}/v1/stream" + (f"?{query}" if query else "")

    def stop(self) -> int:
        """Send SIGTERM and return the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=START_TIMEOUT_S)

    @property
    def log(self) -> str:
        return self.log_path.read_text()


class StreamClient:
    """A client in the smallest sense: sends, and sorts what comes back."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.frames: list[tuple[FrameHeader, bytes]] = []
        self.texts: list[dict[str, Any]] = []

    async def send(self, kind: str, **fields: Any) -> None:
        await self.connection.send(json.dumps({"type": kind, **fields}))

    async def receive(self) -> dict[str, Any] | tuple[FrameHeader, bytes]:
        message = await asyncio.wait_for(self.connection.recv(), ANSWER_TIMEOUT_S)
        if isinstance(message, str):
            self.texts.append(json.loads(message))
            return self.texts[-1]
        self.frames.append(unpack_frame(message))
        return self.frames[-1]

    async def until(self, kind: str) -> dict[str, Any]:
        """Receive up to the first text message of this type."""
        while True:
            message = await self.receive()
            if isinstance(message, dict) and message["type"] == kind:
                return message

    async def closing(self) -> tuple[int, str]:
        """Receive until the end; return close code and reason."""
        with contextlib.suppress(websockets.ConnectionClosed):
            while True:
                await self.receive()
        assert self.connection.close_code is not None
        return self.connection.close_code, self.connection.close_reason or ""

    def codes(self) -> np.ndarray[Any, Any]:
        """Return the codes received so far, [levels, frames]."""
        return np.array([np.frombuffer(payload, "<u2") for _, payload in self.frames], np.int32).T

    def pcm(self, dtype: str) -> np.ndarray[Any, Any]:
        return np.frombuffer(b"".join(payload for _, payload in self.frames), dtype)


CHUNK_BYTES = 3001
"""Splits samples, frames and messages alike."""


@dataclass
class ResumingClient:
    """A client that loses its connection where it is told to, comes back, and keeps every answer exactly once.

    Sends ``data`` from wherever the service says that it stands.

    ``unit_bytes`` is what one unit of the position takes: a sample of all channels, or a frame of codes.
    """

    query: str
    data: bytes
    unit_bytes: int = 2
    payloads: list[bytes] = field(default_factory=list)
    headers: list[FrameHeader] = field(default_factory=list)
    texts: list[dict[str, Any]] = field(default_factory=list)
    readies: list[dict[str, Any]] = field(default_factory=list)
    last_sequence: int = -1
    epoch: int = 0
    token: str = ""

    async def open(self, service: Any, *, by_query: bool = False) -> ClientConnection:
        """Connect, as new or with the token, and receive ``ready``."""
        resume = f"resume_token={self.token}&last_sequence={self.last_sequence}&epoch={self.epoch}"
        query = self.query if not self.token else resume if by_query else ""
        connection = await connect(service.stream_url(query))
        if self.token and not by_query:
            fields = {"token": self.token, "last_sequence": self.last_sequence, "epoch": self.epoch}
            await connection.send(json.dumps({"type": "resume", **fields}))
        while True:
            message = await asyncio.wait_for(connection.recv(), ANSWER_TIMEOUT_S)
            assert isinstance(message, str), "a frame before ready"
            self.texts.append(json.loads(message))
            if self.texts[-1]["type"] != "ready":
                await connection.wait_closed()
                raise ConnectionRefusedError(self.texts[-1])
            self.readies.append(self.texts[-1])
            self.token = self.readies[-1]["resume_token"]
            return connection

    async def send(self, connection: ClientConnection, end: int | None = None) -> None:
        """Send from the service's position up to this unit; every byte, if ``None``."""
        start = self.readies[-1]["position"] * self.unit_bytes
        stop = len(self.data) if end is None else end * self.unit_bytes
        chunk = CHUNK_BYTES if self.unit_bytes <= 8 and "decode" not in self.query else self.unit_bytes * 3
        for first in range(start, stop, chunk):
            await connection.send(self.data[first : min(first + chunk, stop)])

    async def receive(self, connection: ClientConnection) -> dict[str, Any] | FrameHeader:
        message = await asyncio.wait_for(connection.recv(), ANSWER_TIMEOUT_S)
        if isinstance(message, str):
            self.texts.append(json.loads(message))
            if self.texts[-1]["type"] == "codes":
                self._keep(self.texts[-1]["sequence"], message.encode())
            if self.texts[-1]["type"] == "reset_done":
                self.epoch, self.last_sequence = self.texts[-1]["epoch"], -1
            return self.texts[-1]
        header, payload = unpack_frame(message)
        self._keep(header.sequence, payload)
        self.headers.append(header)
        return header

    def _keep(self, sequence: int, payload: bytes) -> None:
        assert sequence == self.last_sequence + 1, "a frame was skipped or came twice"
        self.last_sequence = sequence
        self.payloads.append(payload)

    async def until_frame(self, connection: ClientConnection, sequence: int) -> None:
        while self.last_sequence < sequence:
            await self.receive(connection)

    async def until(self, connection: ClientConnection, kind: str) -> dict[str, Any]:
        while True:
            message = await self.receive(connection)
            if isinstance(message, dict) and message["type"] == kind:
                return message

    async def lose(self, connection: ClientConnection) -> None:
        """Cut the connection, as a network does: no close frame."""
        connection.transport.abort()
        await connection.wait_closed()

    async def travel(self, service: Any, until_sequence: int, *, end: int | None = None, by_query: bool = False) -> None:
        """One connection from opening to loss: send up to ``end`` while receiving up to a frame."""
        connection = await self.open(service, by_query=by_query)
        sending = asyncio.create_task(self.send(connection, end))
        await self.until_frame(connection, until_sequence)
        await self.lose(connection)
        await asyncio.gather(sending, return_exceptions=True)

    async def finish(self, service: Any) -> dict[str, Any]:
        """The last connection: send all that is left, flush, and close."""
        connection = await self.open(service)
        sending = asyncio.create_task(self.send(connection))
        receiving = asyncio.create_task(self.until(connection, "flushed"))
        await sending
        await connection.send(json.dumps({"type": "flush"}))
        flushed = await receiving
        await connection.send(json.dumps({"type": "close"}))
        try:
            while True:
                await self.receive(connection)
        except websockets.ConnectionClosed:
            assert connection.close_code == 1000
        return flushed

    def codes(self) -> np.ndarray[Any, Any]:
        return np.array([np.frombuffer(payload, "<u2") for payload in self.payloads], np.int32).T

    def pcm(self, dtype: str) -> np.ndarray[Any, Any]:
        return np.frombuffer(b"".join(self.payloads), dtype)


@contextlib.asynccontextmanager
async def open_stream(service: RunningService, query: str = "", **options: Any) -> Any:
    async with connect(service.stream_url(query), **options) as connection:
        yield StreamClient(connection)


@contextlib.contextmanager
def running_service(
    folder: Path, model_path: Path | str, *options: str, program: Sequence[str] = (sys.executable, "-P", "-m", "server")
) -> Iterator[RunningService]:
    log_path = folder / f"service-{time.monotonic_ns()}.log"
    command = [*program, "--port", "0", "--model", str(model_path), *PATIENCE, *options]
    with log_path.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=folder, env=os.environ.copy())
    try:
        yield RunningService(process, _url(process, log_path), log_path)
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(timeout=START_TIMEOUT_S)


def _url(process: subprocess.Popen[bytes], log_path: Path) -> str:
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline_s and process.poll() is None:
        if found := re.search(r"serves on (https?://\S+)", log_path.read_text()):
            return found[1]
        time.sleep(0.02)
    raise AssertionError(f"the service did not start:\n{log_path.read_text()}")


@pytest.fixture(scope="session")
def service(tiny_model_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """One service for all tests that leave it as it was."""
    with running_service(tmp_path_factory.mktemp("service"), tiny_model_path) as running:
        yield running
        assert running.stop() == 0
        assert "Traceback" not in running.log


@pytest.fixture(scope="session")
def run_service() -> Callable[..., contextlib.AbstractContextManager[RunningService]]:
    """``with run_service(folder, model, *options) as service``, for fixtures of a module."""
    return running_service


@pytest.fixture
def start_service(tiny_model_path: Path, tmp_path: Path) -> Iterator[Callable[..., RunningService]]:
    """Start services with options of their own; they end with the test."""
    with contextlib.ExitStack() as stack:
        yield lambda *options, **how: stack.enter_context(running_service(tmp_path, tiny_model_path, *options, **how))


@pytest.fixture
def replica(
    start_service: Callable[..., RunningService], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., RunningService]:
    """Start replicas: one secret, one store, drained at once."""
    monkeypatch.setenv("MIMI_SECRET", SECRET)
    monkeypatch.setenv("MIMI_SNAPSHOT_STORE", str(tmp_path / "store"))
    return lambda *options: start_service("--drain-timeout-ms", "100", "--checkpoint-interval-ms", "100", *options)


@pytest.fixture
def stream() -> Callable[..., Any]:
    """``async with stream(service, query) as client``."""
    return open_stream


@pytest.fixture
def resuming() -> type[ResumingClient]:
    """``resuming(query, data)``, a client that comes back."""
    return ResumingClient


@pytest.fixture(scope="session")
def speech() -> np.ndarray[Any, Any]:
    """Three seconds and a bit of a sound with some life in it, int16; the last frame is not whole."""
    time_s = np.arange(24_000 * 3 + 777) / 24_000
    noise = np.random.default_rng(7).normal(0, 0.05, len(time_s))
    voice = np.sin(2 * np.pi * (180 + 60 * np.sin(3 * time_s)) * time_s) * (0.5 + 0.4 * np.sin(7 * time_s))
    return (np.clip(0.6 * voice + noise, -1, 1) * 32_000).astype("<i2")
