"""uvicorn's ``websockets-sansio`` connection, with the gaps closed that a hostile or slow peer would find.

Of uvicorn's WebSocket connections it is the one to build on: it stands on the maintained half of ``websockets``, stops reading
the socket while the application has not taken what came (so TCP pushes back), and honours the ping settings. What it lacks:

* a refusal by the WebSocket layer itself (a message too big, text that is not UTF-8) is named like every other one;
* what one read of the socket brings is parsed slice by slice, as the application takes the messages in it, so that unread
  messages are bounded in number, however small they are; so are fragments of one message and unread pongs;
* closing does not wait for a peer that does not read, and what it leaves unread is thrown away after a while;
* after a refusal the rest of what the peer sends is read and dropped, since closing on unread bytes resets the connection and
  the peer would lose the refusal;
* a handshake that is answered with an HTTP refusal counts as done, instead of as an error in the log that any page could fill;
* any bytes prove a peer alive, since its pong may be queued behind its own audio; and while the service itself has stopped
  reading it waits for no pong, so that no load of ours counts as a peer's death;
* messages are handed over, and other frames parsed, at a limited rate (``message_pace.py``): who sends more of them, however
  small, waits; and who is gone meanwhile is noticed.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, ClassVar

from uvicorn.config import Config
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.frames import CloseCode, Frame
from websockets.protocol import State
from websockets.server import ServerProtocol
from websockets.typing import LoggerLike

from codec_core.errors import CodecError
from server.address_connections import AddressConnections
from server.errors import MessageFloodError, MessageTooBigError, PayloadError, ProtocolError
from server.logs import FRAMES_LOGGER
from server.message_pace import MessagePace, Turns, shared_turns
from server.peer_socket import is_reset
from server.settings import Settings
from server.status_map import answer_for
from server.wire_messages import error_text

PONG_BACKLOG_BYTES = 262_144
LEAST_FRAME_BYTES = 6
"""A client's frame without payload: two bytes, and the mask."""
MOST_SLICE_BYTES = 4_096
"""What is parsed without giving anyone else a turn."""
CLOSE_GRACE_S = 5.0
"""Time for the peer to read what is left and to answer a close frame; after it the connection is cut."""


frames_log = logging.getLogger(FRAMES_LOGGER)


class NamingProtocol(ServerProtocol):
    """The sans-IO half: a message it refuses by itself gets our ``error`` message before the close frame."""

    def __init__(self, max_message_bytes: int, logger: LoggerLike) -> None:
        super().__init__(max_size=max_message_bytes, logger=logger)
        self._max_message_bytes = max_message_bytes
        self.frames_received = 0

    def recv_frame(self, frame: Frame) -> None:
        """Count a frame; see the base class."""
        self.frames_received += 1
        super().recv_frame(frame)

    def fail(self, code: CloseCode | int, reason: str = "") -> None:
        """Fail the connection; see the base class."""
        if code == CloseCode.MESSAGE_TOO_BIG and self.state is State.OPEN:
            expected = f"at most {self._max_message_bytes} bytes"
            self.refuse(MessageTooBigError("message", found="a bigger one", expected=expected))
        else:
            super().fail(code, reason)

    def refuse(self, error: CodecError) -> None:
        """Fail the connection with an error of the tree."""
        self.send_text(error_text(error).encode())
        super().fail(answer_for(error).close_code, error.code)


class BoundedWebSocketProtocol(WebSocketsSansIOProtocol):
    """One connection; see the module."""

    max_queued_messages: ClassVar[int]
    max_messages_per_s: ClassVar[int]
    surplus: ClassVar[Turns]
    addresses: ClassVar[AddressConnections]

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.naming = NamingProtocol(config.ws_max_size, frames_log)
        self.conn = self.naming
        self._unparsed = b""
        self._going_on: asyncio.TimerHandle | None = None
        self._counted_as = ""
        self._pace = MessagePace(self.max_messages_per_s, self.surplus)
        # The slice may also end a frame that an earlier one began.
        self._slice_bytes = min(MOST_SLICE_BYTES, LEAST_FRAME_BYTES * (self.max_queued_messages - 1))

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection over from HTTP."""
        super().connection_made(transport)
        self._counted_as = self.addresses.opened(self.client[0] if self.client else "")

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self.addresses.closed(self._counted_as)
        if self._going_on is not None:
            self._going_on.cancel()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Close the connection; a handshake that is not over is left to the application, which refuses it by name."""
        if self.handshake_complete:
            super().shutdown()

    def data_received(self, data: bytes) -> None:
        """Take bytes from the socket."""
        self._unparsed += data
        self._parse()

    async def receive(self) -> Any:
        """Hand over the oldest message; when it was the last that waits, look for more in what was read already."""
        # Before a message is taken, so that nothing is lost if the wait is cancelled.
        if wait_s := self._pace.take():
            if is_reset(self.transport.get_extra_info("socket")):
                self._abandon()
            await asyncio.sleep(wait_s)
        message = await super().receive()
        self._parse()
        return message

    def _parse(self) -> None:
        """Parse until a message waits; the rest stays, and nothing more is read, until the application has taken it.

        Frames that are no message wait for nobody to take them, nor does anything after a close frame of ours: there the
        others get a turn after each slice.
        """
        while self._unparsed and not self.conn.eof_sent and self._going_on is None and (self.queue.empty() or self.close_sent):
            frames = self._parse_slice()
            if frames > 0:
                self._going_on = self.loop.call_later(self._pace.take_parsed(frames), self._go_on)
        if self.conn.eof_sent:
            self._unparsed = b""
        if self._unparsed and not self.read_paused:
            self.read_paused = True
            self.transport.pause_reading()

    def _parse_slice(self) -> int:
        """Parse some of what was read; return how many frames were in it that are not messages for the application."""
        messages_before, frames_before = self.queue.qsize(), self.naming.frames_received
        self._postpone_keepalive_timeout()
        data, self._unparsed = self._unparsed[: self._slice_bytes], self._unparsed[self._slice_bytes :]
        super().data_received(data)
        return self.naming.frames_received - frames_before - (self.queue.qsize() - messages_before)

    def _go_on(self) -> None:
        self._going_on = None
        self._parse()
        if not self._unparsed and (self.queue.empty() or self.close_sent) and self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()

    def _postpone_keepalive_timeout(self) -> None:
        """Count bytes as proof that the peer is alive; its pong may be behind them."""
        if self.pong_timer is not None and self.ping_timeout is not None:
            self.pong_timer.cancel()
            self.pong_timer = self.loop.call_later(self.ping_timeout, self.keepalive_timeout)

    def handle_parser_exception(self) -> None:
        """Send the refusal that the sans-IO half has made; read on and drop it, until the peer is gone."""
        close = self.conn.close_sent
        if self.close_sent or close is None:
            self._cut()
            return
        # Frames that break the standard have no error message; here they get the name under which they are counted.
        reason = ProtocolError.code if close.code == CloseCode.PROTOCOL_ERROR else close.reason
        self.queue.put_nowait({"type": "websocket.disconnect", "code": close.code, "reason": reason})
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.stop_keepalive()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        self.close_timer = self.loop.call_later(CLOSE_GRACE_S, self._cut)

    def keepalive_timeout(self) -> None:
        """Give up a peer that is not heard of; cut the connection where even that cannot be delivered."""
        if self.read_paused and self.ping_timeout is not None and not self.close_sent:
            self.pong_timer = self.loop.call_later(self.ping_timeout, self.keepalive_timeout)
            return
        super().keepalive_timeout()
        self.loop.call_later(CLOSE_GRACE_S, self._cut)

    def handle_cont(self, event: Frame) -> None:
        """Take a fragment; empty ones would otherwise pile up below any size."""
        if len(self.frames) < self.max_queued_messages:
            super().handle_cont(event)
        elif not self.close_sent:
            found = f"{len(self.frames)} fragments of one message"
            self._refuse(MessageFloodError("connection", found=found, expected=f"fewer than {self.max_queued_messages}"))

    def handle_ping(self) -> None:
        """Send the pong, unless the peer asks for more of them than it reads."""
        if self.transport.get_write_buffer_size() > PONG_BACKLOG_BYTES:
            self._cut()
        else:
            super().handle_ping()

    def send_receive_event_to_app(self) -> None:
        """Hand a whole message to the application, unless it is no text."""
        refusal = self._refusal()
        if refusal is None:
            super().send_receive_event_to_app()
            return
        if not self.close_sent:
            self._refuse(refusal)

    async def send(self, message: Any) -> None:
        """Send for the application; a close frame never waits for the peer to read."""
        closing = message["type"] == "websocket.close"
        if closing:
            self.writable.set()
        await super().send(message)
        if closing:
            # The peer's answer to the close frame may be in what nobody took.
            self._parse()
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True
        if closing and self.close_timer is not None:
            self.close_timer.cancel()
            self.close_timer = self.loop.call_later(CLOSE_GRACE_S, self._cut)

    def _refuse(self, error: CodecError) -> None:
        self.frames = []
        self.naming.refuse(error)
        self.handle_parser_exception()

    def _abandon(self) -> None:
        """Drop what a peer sent that is gone: it would keep its place until the last of it was taken."""
        self._unparsed = b""
        while not self.queue.empty():
            self.queue.get_nowait()
        self._cut()

    def _cut(self) -> None:
        # asyncio cannot abort a transport that is gone already.
        if not self.disconnected:
            self.transport.abort()

    def _refusal(self) -> CodecError | None:
        if self.curr_msg_data_type == "text":
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:
                return PayloadError("text message", found="bytes that are not UTF-8", expected="UTF-8")
        return None


def bounded_protocol(settings: Settings, addresses: AddressConnections) -> type[BoundedWebSocketProtocol]:
    """Make the connection class for a server of these settings; ``addresses`` counts the connections of each peer."""
    limits = {
        "max_queued_messages": settings.max_queued_messages,
        "max_messages_per_s": settings.max_messages_per_s,
        "surplus": shared_turns(settings.max_surplus_messages_per_s),
        "addresses": addresses,
    }
    return type("BoundedWebSocketProtocol", (BoundedWebSocketProtocol,), limits)
