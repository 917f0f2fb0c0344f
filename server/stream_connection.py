"""One connection of a stream, from the accepted handshake to the close frame.

A reader takes messages into a bounded inbox, a worker answers them in order. A full inbox stops the reader, which stops the
socket, which pushes back on the client. Whatever ends the stream, its place and its codec state are freed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine
from dataclasses import asdict
from typing import Any, NoReturn

from fastapi import WebSocket
from starlette.types import Message

from codec_core.errors import CodecError
from server.control_allowance import ControlAllowance
from server.errors import DrainingError, HelloTimeoutError, NotOfferedError, SessionTimeoutError
from server.inbox import Inbox
from server.sample_format import frame_bytes
from server.service import ClientGoneError, Service
from server.session_registry import Lease
from server.status_map import as_codec_error
from server.stream_session import StreamSession
from server.stream_socket import StreamSocket
from server.tasks import first_of
from server.wire import Close, Event, Flush, Hello, Ping, Reset, ServerWire
from server.wire_messages import PROTOCOL_VERSION, SUBPROTOCOL, server_text
from server.wire_settings import quoted

WARNING_INTERVAL_S = 1.0
MESSAGE_OVERHEAD_BYTES = 64
"""What a message counts for in the inbox besides its payload, so that empty ones are bounded too."""

log = logging.getLogger("mimi.server.stream")


class StreamConnection:
    """One WebSocket."""

    def __init__(self, websocket: WebSocket, service: Service) -> None:
        self._websocket = websocket
        self._socket = StreamSocket(websocket, service.settings)
        self._service = service
        self._settings = service.settings
        self._wire = ServerWire(service.offer, service.settings.max_message_bytes)
        self._control = ControlAllowance(service.settings.max_control_messages_per_s)
        self._stopped: asyncio.Future[NoReturn] = asyncio.get_running_loop().create_future()
        self._farewells: set[asyncio.Task[None]] = set()
        self._warned_s = 0.0

    async def run(self) -> None:
        """Accept, serve and close; never raises what the client caused."""
        try:
            await self._serve()
            await self._close(None)
        except ClientGoneError:
            pass
        except CodecError as error:
            await self._close(error)
        except Exception as error:
            log.exception("a stream failed")
            await self._close(as_codec_error(error))

    def go_away(self, time_left_ms: int) -> None:
        """Tell the client that the service goes down."""
        text = server_text("goaway", code="draining", time_left_ms=time_left_ms)
        task = asyncio.get_running_loop().create_task(self._socket.send_quietly(text))
        self._farewells.add(task)
        task.add_done_callback(self._farewells.discard)

    def stop(self, error: DrainingError) -> None:
        """End the stream with this error."""
        if not self._stopped.done():
            self._stopped.set_exception(error)

    async def _serve(self) -> None:
        offered = self._websocket.scope["subprotocols"]
        await self._websocket.accept(SUBPROTOCOL if SUBPROTOCOL in offered else None)
        if offered and SUBPROTOCOL not in offered:
            raise NotOfferedError("subprotocol", found=quoted(", ".join(offered)), expected=SUBPROTOCOL)
        with self._service.registry.lease("stream", self) as lease:
            try:
                async with asyncio.timeout(self._settings.session_timeout_ms / 1000) as limit:
                    await self._until_stopped(self._stream(lease))
            except TimeoutError as cause:
                if not limit.expired():
                    raise
                expected = f"at most {self._settings.session_timeout_ms} ms"
                raise SessionTimeoutError("session", found="a longer one", expected=expected) from cause

    async def _until_stopped(self, work: Coroutine[Any, Any, None]) -> None:
        await first_of(asyncio.create_task(work), self._stopped)

    async def _stream(self, lease: Lease) -> None:
        hello = await self._hello()
        session = StreamSession(hello.settings, self._service.model, self._service.executor, self._socket.send)
        log.info("stream %s opened: %s, %d levels", lease.session_id, hello.settings.mode, hello.settings.levels)
        try:
            await self._socket.send(self._ready(lease, hello))
            max_bytes = self._settings.credit_frames * (frame_bytes(hello.settings) + MESSAGE_OVERHEAD_BYTES)
            inbox: Inbox[tuple[float, Event | CodecError]] = Inbox(max_bytes, self._settings.max_queued_messages)
            await first_of(asyncio.create_task(self._read(inbox)), asyncio.create_task(self._work(inbox, session)))
        finally:
            session.close()
            log.info("stream %s ended after %d frames", lease.session_id, session.frames)

    async def _hello(self) -> Hello:
        hello = self._wire.receive_query(self._websocket.query_params.multi_items())
        if hello is not None:
            return hello
        timeout_ms = self._settings.hello_timeout_ms
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                event, _ = self._event(await self._socket.receive())
        except TimeoutError as cause:
            raise HelloTimeoutError("hello", found="nothing", expected=f"settings within {timeout_ms} ms") from cause
        if not isinstance(event, Hello):
            raise TypeError(event)
        return event

    def _ready(self, lease: Lease, hello: Hello) -> str:
        info, settings = self._service.model.info, self._settings
        return server_text(
            "ready",
            protocol=PROTOCOL_VERSION,
            session=lease.session_id,
            model={"name": info.name, "sha256": info.sha256, "weight_class": info.weight_class, "numerics": info.numerics},
            settings=asdict(hello.settings),
            codec={
                "sample_rate": info.sample_rate_hz,
                "frame_samples": info.frame_samples,
                "frame_rate": info.frame_rate_hz,
                "codebook_entries": info.codebook_entries,
            },
            credit_frames=settings.credit_frames,
            delay_samples=info.frame_samples,
            limits={
                "max_message_bytes": settings.max_message_bytes,
                "idle_timeout_ms": settings.idle_timeout_ms,
                "session_timeout_ms": settings.session_timeout_ms,
                "send_timeout_ms": settings.send_timeout_ms,
            },
        )

    async def _read(self, inbox: Inbox[tuple[float, Event | CodecError]]) -> None:
        """Fill the inbox; only the client's going away ends this, so that what came before is answered first."""
        try:
            while True:
                event, size_bytes = self._event(await self._socket.receive_before_idle())
                if isinstance(event, (Flush, Reset, Ping)):
                    self._control.take()
                await inbox.put((time.monotonic(), event), size_bytes + MESSAGE_OVERHEAD_BYTES)
                if isinstance(event, Close):
                    break
        except CodecError as error:
            await inbox.put((time.monotonic(), error))
        while True:
            await self._socket.receive()

    async def _work(self, inbox: Inbox[tuple[float, Event | CodecError]], session: StreamSession) -> None:
        while True:
            arrived_s, event = await inbox.get()
            if isinstance(event, CodecError):
                raise event
            if isinstance(event, Close):
                return
            await session.handle(event)
            await self._warn_of_lag(arrived_s)
            # Events that need no codec would otherwise be answered in one turn of the loop, and everyone else would wait.
            await asyncio.sleep(0)

    async def _warn_of_lag(self, arrived_s: float) -> None:
        now_s = time.monotonic()
        lag_ms = int((now_s - arrived_s) * 1000)
        if lag_ms >= self._settings.lag_warning_ms and now_s - self._warned_s >= WARNING_INTERVAL_S:
            self._warned_s = now_s
            await self._socket.send(server_text("warning", code="lagging", message=f"an answer took {lag_ms} ms"))

    def _event(self, message: Message) -> tuple[Event, int]:
        data = message.get("bytes")
        if data is not None:
            return self._wire.receive_binary(data), len(data)
        text = message["text"]
        return self._wire.receive_text(text), len(text)

    async def _close(self, error: CodecError | None) -> None:
        for task in self._farewells:
            task.cancel()
        await self._socket.close(error)
