"""One connection of a stream, from the accepted handshake to the close frame.

A reader takes messages to the stream's bounded inbox, a writer sends what is in the outbox. A full inbox stops the reader,
which stops the socket, which pushes back on the client. Whatever ends the connection, its place is freed; what becomes of the
stream is for :class:`~server.live_streams.LiveStreams` to say.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Coroutine, Iterator
from typing import Any, NoReturn, TypeVar

from fastapi import WebSocket
from starlette.types import Message

from codec_core.errors import CodecError
from server.client_address import client_of
from server.control_allowance import ControlAllowance
from server.errors import HelloTimeoutError, NotOfferedError, SessionTimeoutError
from server.live_stream import Carrier, LiveStream, taken_over
from server.live_streams import RESUMABLE
from server.logs import bind_to_log
from server.outbox import Outbox
from server.pace_allowance import PaceAllowance
from server.sample_format import audio_seconds, waiting_bytes
from server.service import ClientGoneError, Service
from server.session_registry import Lease
from server.status_map import as_codec_error
from server.stream_socket import ClientLeftError, StreamSocket
from server.tasks import first_of
from server.wire import Audio, Close, Codes, Event, Flush, Hello, Ping, Reset, ServerWire
from server.wire_messages import SUBPROTOCOL, server_text
from server.wire_opus import Packets
from server.wire_resume import Resume
from server.wire_settings import quoted

Result = TypeVar("Result")
STATS_INTERVAL_S = 1.0

log = logging.getLogger("mimi.server.stream")


class StreamConnection:
    """One WebSocket."""

    def __init__(self, websocket: WebSocket, service: Service) -> None:
        self.outbox = Outbox()
        self.gone = asyncio.Event()
        self.stream: LiveStream | None = None
        self._websocket = websocket
        self._socket = StreamSocket(websocket, service.settings)
        self._service = service
        self._settings = service.settings
        self._wire = ServerWire(service.offer, service.settings.max_message_bytes)
        self._control = ControlAllowance(service.settings.max_control_messages_per_s)
        self._stopped: asyncio.Future[NoReturn] = asyncio.get_running_loop().create_future()
        # Somebody may stop a connection that ends by itself just then; nobody asks for the reason any more.
        self._stopped.add_done_callback(lambda stopped: stopped.cancelled() or stopped.exception())
        self._farewells: set[asyncio.Task[None]] = set()

    @property
    def queued_frames(self) -> float:
        """Frames that were read and are not answered yet."""
        return 0.0 if self.stream is None else self.stream.queued_frames

    @property
    def unsent_bytes(self) -> int:
        """Bytes of answers that wait to be sent."""
        return self.outbox.waiting_bytes

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
        token = None if self.stream is None else self._service.streams.token_for(self.stream)
        resume = {} if token is None else {"resume_token": token}
        text = server_text("goaway", code="draining", time_left_ms=time_left_ms, **resume)
        task = asyncio.get_running_loop().create_task(self._socket.send_quietly(text))
        self._farewells.add(task)
        task.add_done_callback(self._farewells.discard)

    def stop(self, error: CodecError) -> None:
        """End the connection with this error."""
        if not self._stopped.done():
            self._stopped.set_exception(error)

    def end(self, error: CodecError) -> None:
        """End the connection with this error: the same, for the stream."""
        self.stop(error)

    async def _serve(self) -> None:
        offered = self._websocket.scope["subprotocols"]
        await self._websocket.accept(SUBPROTOCOL if SUBPROTOCOL in offered else None)
        if offered and SUBPROTOCOL not in offered:
            raise NotOfferedError("subprotocol", found=quoted(", ".join(offered)), expected=SUBPROTOCOL)
        request = self._wire.receive_query(self._websocket.query_params.multi_items())
        if request is None:
            with self._service.registry.waiting(self):
                request = await self._until_stopped(self._first_message())
        replaced = self._replaced(request)
        client = client_of(self._websocket)
        with self._service.registry.lease("stream", self, client=client, in_place_of=replaced) as lease:
            end: BaseException | None = None
            if replaced is not None:
                # At once: it has no place any more.
                replaced.end(taken_over())
            try:
                await self._until_stopped(self._open(request, lease))
                self._name_in_log()
                await self._carry()
            except BaseException as error:
                end = None if isinstance(error, ClientLeftError) else error
                raise
            finally:
                if self.stream is not None:
                    await self._service.streams.part(self.stream, self, end)
                self.gone.set()

    async def _until_stopped(self, work: Coroutine[Any, Any, Result]) -> Result:
        task = asyncio.create_task(work)
        await first_of(task, self._stopped)
        return task.result()

    def _replaced(self, request: Hello | Resume) -> Carrier | None:
        """Find the connection whose place this one takes, because it takes over its stream."""
        if not isinstance(request, Resume):
            return None
        with self._counting_resumes():
            return self._service.streams.carrier_of(request)

    async def _open(self, request: Hello | Resume, lease: Lease) -> None:
        """Agree what the connection is to carry, and attach it."""
        streams = self._service.streams
        if isinstance(request, Resume):
            stream = await self._resumed(request)
            settings = stream.session.settings
            self._wire.go_on(settings, stream.session.opus_place)
            lease.load(self._service.demand(settings), resumed=True)
            log.info("stream %s resumed", stream.lineage.stream_id)
        else:
            settings = request.settings
            self._service.require_room_to_talk(settings)
            lease.load(self._service.demand(settings))
            stream = streams.open(settings, self)
            log.info("stream %s opened: %s, %d levels", stream.lineage.stream_id, settings.mode, settings.levels)

    async def _resumed(self, request: Resume) -> LiveStream:
        with self._counting_resumes():
            stream = await self._service.streams.resume(request, self)
        self._service.metrics.resumed("ok")
        return stream

    @contextlib.contextmanager
    def _counting_resumes(self) -> Iterator[None]:
        try:
            yield
        except CodecError as error:
            self._service.metrics.resumed(error.code)
            raise

    def _name_in_log(self) -> None:
        if self.stream is not None:
            bind_to_log(session=self.stream.lineage.stream_id)

    async def _first_message(self) -> Hello | Resume:
        timeout_ms = self._settings.hello_timeout_ms
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                event, _ = self._event(await self._socket.receive())
        except TimeoutError as cause:
            raise HelloTimeoutError("hello", found="nothing", expected=f"settings within {timeout_ms} ms") from cause
        if not isinstance(event, Hello | Resume):
            raise TypeError(event)
        return event

    async def _carry(self) -> None:
        """Read, write and watch the time, until one of these is over."""
        stream = self.stream
        if stream is None:
            raise TypeError(stream)
        tasks = [self._read(stream), self._write(), self._watch_time(stream)]
        if stream.session.settings.stats == "on":
            tasks.append(self._tell_stats(stream))
        await first_of(*(asyncio.create_task(task) for task in tasks), self._stopped)

    async def _read(self, stream: LiveStream) -> None:
        """Fill the inbox; only the client's going away ends this, so that what came before is answered first."""
        settings = stream.session.settings
        pace = PaceAllowance(None if settings.pace == "free" else self._settings.max_pace)
        try:
            while True:
                event, size_bytes = self._event(await self._socket.receive_before_idle())
                if isinstance(event, (Flush, Reset, Ping)):
                    self._control.take()
                self._service.streams.confirm(stream)
                await stream.accept(event, size_bytes)
                if isinstance(event, Close):
                    break
                if isinstance(event, Audio | Packets | Codes) and (wait_s := pace.take(audio_seconds(event, settings))):
                    await asyncio.sleep(wait_s)
        except CodecError as error:
            if error.code in RESUMABLE:
                raise
            await stream.accept(error)
        while True:
            await self._socket.receive()

    async def _write(self) -> None:
        while (message := await self.outbox.get()) is not None:
            await self._socket.send(message)

    async def _watch_time(self, stream: LiveStream) -> None:
        timeout_ms = self._settings.session_timeout_ms
        await asyncio.sleep(max(0.0, stream.lineage.opened_unix_s + timeout_ms / 1000 - time.time()))
        raise SessionTimeoutError("session", found="a longer one", expected=f"at most {timeout_ms} ms")

    async def _tell_stats(self, stream: LiveStream) -> None:
        frames, answering_s = stream.session.counters.frames, stream.session.answering_s
        while True:
            await asyncio.sleep(STATS_INTERVAL_S)
            audio_s = (stream.session.counters.frames - frames) / self._service.model.info.frame_rate_hz
            factor = round((stream.session.answering_s - answering_s) / audio_s, 4) if audio_s else 0.0
            frames, answering_s = stream.session.counters.frames, stream.session.answering_s
            lag_ms = round(stream.lag_s * 1000, 1)
            text = server_text("stats", lag_ms=lag_ms, queued_frames=stream.queued_frames, real_time_factor=factor)
            await self.outbox.put(text)

    def _event(self, message: Message) -> tuple[Event, int]:
        data = message.get("bytes")
        if data is not None:
            binary = self._wire.receive_binary(data)
            return binary, waiting_bytes(binary, len(data))
        text = message["text"]
        return self._wire.receive_text(text), len(text)

    async def _close(self, error: CodecError | None) -> None:
        for task in self._farewells:
            task.cancel()
        await self._socket.close(error)
