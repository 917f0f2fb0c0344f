"""A TCP proxy that does to connections what networks do: cuts them, lets them fall silent, slows them down."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

_PIECE_BYTES: Final = 16_384


class ChaosProxy:
    """Passes bytes between clients and a port whose service may come and go. Faults are asked for by a connection's number."""

    def __init__(self, target_port: int) -> None:
        self.target_port = target_port
        self.port = 0
        self._server: asyncio.Server | None = None
        self._connections: dict[int, _Passage] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._made = 0

    async def __aenter__(self) -> ChaosProxy:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for passage in list(self._connections.values()):
            passage.cut()
        await asyncio.gather(*self._tasks)
        await self._server.wait_closed()

    @property
    def open_connections(self) -> list[int]:
        """Numbers of the connections that pass bytes, oldest first."""
        return [number for number, passage in self._connections.items() if not passage.is_silent]

    def cut(self, number: int) -> None:
        """Reset both sides of a connection."""
        self._connections[number].cut()

    def silence(self, number: int) -> None:
        """Pass nothing any more and tell nobody: to either side the other is dead, and no packet says so."""
        self._connections[number].is_silent = True

    def slow_down(self, number: int, bytes_per_s: float) -> None:
        """Pass what the service sends no faster than this, so that its client seems a slow reader."""
        self._connections[number].bytes_per_s = bytes_per_s

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._pass(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            upstream, to_service = await asyncio.open_connection("127.0.0.1", self.target_port)
        except OSError:
            writer.transport.abort()
            return
        number, self._made = self._made, self._made + 1
        passage = self._connections[number] = _Passage(writer, to_service)
        try:
            await passage.run(reader, upstream)
        finally:
            del self._connections[number]
            passage.cut()


class _Passage:
    def __init__(self, to_client: asyncio.StreamWriter, to_service: asyncio.StreamWriter) -> None:
        self._to_client = to_client
        self._to_service = to_service
        self.is_silent = False
        self.bytes_per_s = 0.0

    def cut(self) -> None:
        for writer in (self._to_client, self._to_service):
            writer.transport.abort()

    async def run(self, from_client: asyncio.StreamReader, from_service: asyncio.StreamReader) -> None:
        directions = [
            asyncio.create_task(self._copy(from_client, self._to_service, is_answer=False)),
            asyncio.create_task(self._copy(from_service, self._to_client, is_answer=True)),
        ]
        await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        if self.is_silent:
            # Nobody is told that the other has gone; who waits long enough finds out.
            await asyncio.wait(directions)
        for direction in directions:
            direction.cancel()
        await asyncio.gather(*directions, return_exceptions=True)

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_answer: bool) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_PIECE_BYTES):
                if self.is_silent:
                    continue
                if is_answer and self.bytes_per_s:
                    await asyncio.sleep(len(data) / self.bytes_per_s)
                writer.write(data)
                await writer.drain()
