"""The two addresses of moshi-server's Mimi module: codes in at one, the sound of them out at the other, to all who listen.

Off unless ``moshi_rooms`` names rooms. What goes over the wire is in :mod:`server.moshi_rooms`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, NoReturn

from fastapi import APIRouter, WebSocket

from codec_core.errors import CodecError
from server.admission import demand_of
from server.client_address import client_of
from server.moshi_rooms import AUDIO, CODES, ERROR, HANDSHAKE, PING, TEXT, Listener, Room, Rooms, parse_codes
from server.origin import check_origin
from server.pace_allowance import PaceAllowance
from server.refusal import refusal_response
from server.sample_format import FRAME_S
from server.service import ClientGoneError, Service, service_of
from server.session_registry import Lease
from server.settings import Settings
from server.status_map import CLOSE_DONE, answer_for, as_codec_error
from server.stream_socket import LAST_WORDS_S, StreamSocket
from server.tasks import first_of

ROOM_HEADER: Final = "room_id"
PING_INTERVAL_S: Final = 5.0

log = logging.getLogger("mimi.server.moshi")


def moshi_router(settings: Settings) -> APIRouter:
    """Make the routes; none where there are no rooms.

    Raises:
        UnavailableError: see :class:`server.moshi_rooms.Rooms`.

    """
    router, rooms = APIRouter(), Rooms(settings)

    async def send(websocket: WebSocket) -> None:
        """Take codes."""
        await _serve(websocket, rooms, _Sender)

    async def receive(websocket: WebSocket) -> None:
        """Give sound."""
        await _serve(websocket, rooms, _Receiver)

    if settings.moshi_room_list:
        router.add_api_websocket_route(settings.moshi_send_path, send)
        router.add_api_websocket_route(settings.moshi_recv_path, receive)
    return router


class _Connection:
    """One WebSocket in a room: what both sides have in common."""

    def __init__(self, websocket: WebSocket, service: Service, room: Room) -> None:
        self.service = service
        self.room = room
        self.socket = StreamSocket(websocket, service.settings)
        self._stopped: asyncio.Future[NoReturn] = asyncio.get_running_loop().create_future()
        self._stopped.add_done_callback(lambda stopped: stopped.cancelled() or stopped.exception())

    @property
    def queued_frames(self) -> float:
        """Frames that wait: none, each is answered before the next is read."""
        return 0.0

    @property
    def unsent_bytes(self) -> int:
        """Bytes that wait to be sent."""
        return 0

    def go_away(self, time_left_ms: int) -> None:
        """Say nothing: the protocol has no word for it."""

    def stop(self, error: CodecError) -> None:
        """End with this error."""
        if not self._stopped.done():
            self._stopped.set_exception(error)

    async def run(self, lease: Lease) -> None:
        """Serve until either side ends it."""
        await first_of(asyncio.create_task(self.serve(lease)), self._stopped)

    async def serve(self, lease: Lease, /) -> None:
        """Serve until the client leaves."""
        raise NotImplementedError


class _Sender(_Connection):
    async def serve(self, lease: Lease, /) -> None:
        self.room.enter(self.service.settings.retry_after_ms)
        pace = PaceAllowance(self.service.settings.max_pace)
        decoder = None
        levels: int | None = None
        try:
            while True:
                message = (await self.socket.receive_before_idle()).get("bytes") or b""
                if message[:1] == bytes([TEXT]):
                    self.room.tell(message)
                if message[:1] != bytes([CODES]):
                    continue
                codes = parse_codes(message, levels, self.service.offer)
                if decoder is None:
                    levels = len(codes)
                    lease.load(demand_of("decode", levels))
                    decoder = self.service.model.decoder(levels)
                await self.room.play(await self.service.executor.decode(decoder, codes))
                await asyncio.sleep(pace.take(FRAME_S))
        finally:
            self.room.leave()
            if decoder is not None:
                self.service.executor.retire(decoder)


class _Receiver(_Connection):
    async def serve(self, _: Lease, /) -> None:
        header = await self.room.header()
        # From before the first message is sent: a listener misses nothing of what is played meanwhile.
        listener = self.room.listen(self.service.settings.credit_frames)
        try:
            await self.socket.send(HANDSHAKE)
            await self.socket.send(bytes([AUDIO]) + header)
            tasks = (self._write(listener), self._ping(listener), self._read())
            await first_of(*(asyncio.create_task(task) for task in tasks))
        finally:
            self.room.forget(listener)

    async def _write(self, listener: Listener) -> None:
        while True:
            await self.socket.send(await listener.next())

    async def _ping(self, listener: Listener) -> None:
        while True:
            await asyncio.sleep(PING_INTERVAL_S)
            listener.offer(PING)

    async def _read(self) -> None:
        while True:
            await self.socket.receive()


async def _serve(websocket: WebSocket, rooms: Rooms, side: Callable[[WebSocket, Service, Room], _Connection]) -> None:
    service = service_of(websocket)
    try:
        check_origin(websocket, service.settings)
        room = rooms.find(websocket.headers.get(ROOM_HEADER, websocket.query_params.get(ROOM_HEADER)))
    except CodecError as error:
        log.info("refused: %s: %s", error.code, error)
        await websocket.send_denial_response(refusal_response(error))
        return
    await websocket.accept()
    connection = side(websocket, service, room)
    with contextlib.suppress(ClientGoneError):
        await _closing(websocket, _led(connection, service, websocket))


async def _led(connection: _Connection, service: Service, websocket: WebSocket) -> None:
    with service.registry.lease("stream", connection, client=client_of(websocket)) as lease:
        await connection.run(lease)


async def _closing(websocket: WebSocket, work: Awaitable[Any]) -> None:
    """Do the work; close with what ended it, told in the protocol's own words first."""
    try:
        await work
    except ClientGoneError:
        raise
    except Exception as cause:
        error = as_codec_error(cause)
        log.log(logging.INFO if error is cause else logging.ERROR, "ended: %s: %s", error.code, error)
        with contextlib.suppress(OSError, RuntimeError, TimeoutError):
            async with asyncio.timeout(LAST_WORDS_S):
                await websocket.send_bytes(bytes([ERROR]) + f"{error.code}: {error}".encode("utf-8", "replace"))
        with contextlib.suppress(OSError, RuntimeError):
            await websocket.close(answer_for(error).close_code, error.code)
        return
    await websocket.close(CLOSE_DONE, "done")
