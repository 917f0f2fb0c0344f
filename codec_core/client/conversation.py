"""The line's side of a stream, on asyncio: sends what the outbox holds, hands out what comes, makes lost connections again.

A supervisor runs a writer and a reader on one connection after another, until the stream is closed, refused or cannot be had
again.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable
from typing import Any, Final, Literal, TypeVar

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, ConnectionClosedOK

from codec_core.client.line import LineLostError, abandon, as_lost, end_of_line, open_within
from codec_core.client.messages import Flushed, Frame, GoAway, Refused, ResetDone, Warned
from codec_core.client.observation import Notice
from codec_core.client.outbox import Chunk
from codec_core.client.protocol import CODEC_FRAMES_PER_S, StreamProtocol
from codec_core.client.received import ReceivedQueue
from codec_core.client.settings import LineOptions
from codec_core.client.timing import Pacer
from codec_core.errors import CodecError, InternalError, SessionClosedError

UNPACED_FRAMES: Final = 8
"""Frames in one message where nothing holds input back."""
T = TypeVar("T")


class Conversation:
    """Everything between a stream's buffers and its service.

    Args:
        url: where the service is.
        protocol: the stream; its outbox is filled by others, who then set :attr:`work`.
        options: how to behave on the line.
        paced: whether input goes out in real time.
        notify: called with what no call reports.

    """

    def __init__(
        self, url: str, protocol: StreamProtocol, options: LineOptions, *, paced: bool, notify: Callable[[Notice], None]
    ) -> None:
        self._url = url
        self._protocol = protocol
        self._options = options
        self._pacer = Pacer(protocol.units_per_s) if paced else None
        self._notify = notify
        self._supervisor: asyncio.Task[None] | None = None
        self._flushes: list[asyncio.Future[Flushed]] = []
        self._resets: list[asyncio.Future[ResetDone]] = []
        self._closing = False
        self._failure: CodecError | None = None
        # Jitter, nothing that must not be guessed.
        self._rng = random.Random()  # noqa: S311
        self.received: ReceivedQueue[Frame | Flushed] = ReceivedQueue(options.max_received_frames)
        self.work = asyncio.Event()
        """To be set when the outbox got something to send."""
        self.room = asyncio.Event()
        """Set when the outbox may have room again, and at the end."""

    async def open(self) -> None:
        """Connect and start the supervisor.

        Raises:
            CodecError: the service's refusal, or that there is none.

        """
        connection = await self._open(self._options.wait_for_place_ms, None)
        self._supervisor = asyncio.create_task(self._supervise(connection))

    def require_open(self) -> None:
        """Refuse what comes after the end.

        Raises:
            CodecError: why the stream has ended.

        """
        if self._failure is not None:
            raise self._failure
        if self._closing or self._supervisor is None or self._supervisor.done():
            raise SessionClosedError("stream", "closed", "an open stream")

    @property
    def message_bytes(self) -> int:
        """Most bytes of one message of input: whole samples or frames, a frame at a time where input is paced."""
        ready = self._protocol.ready
        most = 1 if ready is None else ready.max_message_bytes
        frames = UNPACED_FRAMES if self._pacer is None else 1
        units = max(1, int(frames * self._protocol.units_per_s / CODEC_FRAMES_PER_S))
        unit_bytes = self._protocol.outbox.unit_bytes
        return max(unit_bytes, min(units * unit_bytes, most - most % unit_bytes))

    async def flush(self) -> Flushed:
        """Send a flush and wait for its answer."""
        return await self._control("flush", self._flushes)

    async def reset(self) -> None:
        """Send a reset and wait for its answer."""
        await self._control("reset", self._resets)

    async def close(self) -> None:
        """Have what was sent dealt with, as far as the line and the time allow, and end."""
        supervisor = self._supervisor
        if supervisor is None:
            return
        await self.received.discard()
        if not self._closing and not supervisor.done():
            self._protocol.outbox.append_control("close")
            self.work.set()
        self._closing = True
        await asyncio.wait([supervisor], timeout=self._options.close_timeout_ms / 1000)
        supervisor.cancel()
        await asyncio.gather(supervisor, return_exceptions=True)

    async def _control(self, kind: Literal["flush", "reset"], waiting: list[asyncio.Future[T]]) -> T:
        self.require_open()
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        waiting.append(future)
        self._protocol.outbox.append_control(kind)
        self.work.set()
        return await future

    async def _open(self, limit_ms: int, cause: LineLostError | None) -> ClientConnection:
        return await open_within(limit_ms / 1000, self._url, self._protocol, self._options, rng=self._rng, cause=cause)

    async def _supervise(self, connection: ClientConnection) -> None:
        try:
            while True:
                try:
                    await self._converse(connection)
                    return
                except LineLostError as cause:
                    if self._closing:
                        return
                    self._notify(Notice("lost", str(cause.error)))
                    connection = await self._again(cause)
                    ready = self._protocol.ready
                    self._notify(Notice("resumed", f"resampler {ready.resampler}" if ready and ready.resampler else ""))
        except CodecError as error:
            self._failure = error
        except Exception as cause:
            self._failure = InternalError("stream", f"{type(cause).__name__}: {cause}")
            raise
        finally:
            await self._end()

    async def _again(self, cause: LineLostError) -> ClientConnection:
        """Make the next connection of a stream that can be resumed."""
        ready, give_up_ms = self._protocol.ready, self._options.give_up_ms
        if self._protocol.token is None or ready is None:
            raise cause.error
        return await self._open(ready.resume_grace_ms if give_up_ms is None else give_up_ms, cause)

    async def _converse(self, connection: ClientConnection) -> None:
        """Read and write until the stream is done.

        Raises:
            LineLostError: the connection ended first.
            CodecError: the stream is refused.

        """
        reader, writer = asyncio.create_task(self._read(connection)), asyncio.create_task(self._write(connection))
        try:
            await asyncio.wait([reader, writer], return_when=asyncio.FIRST_COMPLETED)
            if writer.done():
                writer.result()
            # Only the reader learns why a connection ended.
            await reader
        finally:
            for task in (reader, writer):
                task.cancel()
            await asyncio.gather(reader, writer, return_exceptions=True)
            await abandon(connection)

    async def _read(self, connection: ClientConnection) -> None:
        try:
            while True:
                await self._handle(await connection.recv())
                if self._protocol.ack_is_due:
                    # For the writer: a reader that waited to send could wait for a service that waits to be read.
                    self.work.set()
        except ConnectionClosed as cause:
            if not (self._closing and isinstance(cause, ConnectionClosedOK)):
                raise end_of_line(cause) from cause

    async def _handle(self, message: str | bytes) -> None:
        event = self._protocol.receive(message, time.monotonic())
        match event:
            case Frame():
                await self.received.put(event)
            case Flushed():
                await self.received.put(event)
                _answer(self._flushes, event)
            case ResetDone():
                _answer(self._resets, event)
            case Warned(code, text):
                self._notify(Notice("warning", f"{code}: {text}"))
            case GoAway(time_left_ms):
                self._notify(Notice("goaway", f"the service goes down in {time_left_ms} ms"))
            case Refused(error):
                # Who has something to say was not silent: the line was, or this machine stood still.
                was_not_idle = error.code == "idle_timeout" and self._protocol.outbox.has_unsent
                raise LineLostError(error) if was_not_idle else as_lost(error)

    async def _write(self, connection: ClientConnection) -> None:
        outbox = self._protocol.outbox
        with contextlib.suppress(ConnectionClosed):
            while True:
                if self._protocol.ack_is_due:
                    await connection.send(self._protocol.ack())
                entry = outbox.peek(self.message_bytes)
                if entry is None:
                    self.work.clear()
                    await self.work.wait()
                    continue
                if self._pacer is not None and isinstance(entry, Chunk):
                    end_units = entry.end.byte / outbox.unit_bytes
                    await asyncio.sleep(self._pacer.delay_s(entry.end.epoch, end_units, time.monotonic()))
                await connection.send(self._protocol.encoded(entry))
                self._protocol.sent(entry, time.monotonic())
                self.room.set()

    async def _end(self) -> None:
        """Let everybody who waits know."""
        self.room.set()
        error = self._failure or SessionClosedError("stream", "closed before this was answered", "an open stream")
        waiting: list[asyncio.Future[Any]] = [*self._flushes, *self._resets]
        for future in waiting:
            if not future.done():
                future.set_exception(error)
        await self.received.end(self._failure)


def _answer(waiting: list[asyncio.Future[T]], value: T) -> None:
    """Give a value to the oldest who waits."""
    future = waiting.pop(0)
    if not future.done():
        future.set_result(value)
