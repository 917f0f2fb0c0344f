"""One WebSocket with the time limits of a stream: what is received in time, what is sent in time, and the last words."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from fastapi import WebSocket, WebSocketDisconnect
from starlette.types import Message

from codec_core.errors import CodecError
from server.errors import IdleTimeoutError, TooSlowError
from server.service import ClientGoneError
from server.settings import Settings
from server.status_map import CLOSE_DONE, answer_for
from server.wire_messages import error_text

CLOSED_BY_CHOICE = (1000, 1005)
"""Close codes of a client that is done: the one that says so, and none at all. After others, like 1001, it may come back."""
LAST_WORDS_S = 1.0
"""Time for the error message of a stream that is ended."""

log = logging.getLogger("mimi.server.stream")


class ClientLeftError(ClientGoneError):
    """The client hung up in good order: it wants nothing more of the stream."""


class StreamSocket:
    """Sends and receives for one stream; a client that hangs up is a :class:`~server.service.ClientGoneError`.

    Args:
        websocket: the connection, its handshake accepted or still to be.
        settings: where the time limits are.

    """

    def __init__(self, websocket: WebSocket, settings: Settings) -> None:
        self.websocket = websocket
        self._settings = settings
        self._sending = asyncio.Lock()

    async def receive(self) -> Message:
        """Wait for the next message, however long it takes."""
        message = await self.websocket.receive()
        if message["type"] == "websocket.disconnect":
            # Only a close frame that came has a reason, if an empty one; a lost connection has none.
            raise ClientLeftError if "reason" in message and message["code"] in CLOSED_BY_CHOICE else ClientGoneError
        return message

    async def receive_before_idle(self) -> Message:
        """Wait for the next message.

        Raises:
            IdleTimeoutError: none came within the idle time.

        """
        timeout_ms = self._settings.idle_timeout_ms
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await self.receive()
        except TimeoutError as cause:
            raise IdleTimeoutError("client", found="silence", expected=f"a message every {timeout_ms} ms") from cause

    async def send(self, message: str | bytes) -> None:
        """Send one message; returns once it is on its way.

        Raises:
            TooSlowError: the client leaves unread what it was sent before.

        """
        timeout_ms = self._settings.send_timeout_ms
        try:
            async with asyncio.timeout(timeout_ms / 1000), self._sending:
                await self._send_now(message)
        except TimeoutError as cause:
            raise TooSlowError("client", found="messages left unread", expected=f"reading within {timeout_ms} ms") from cause

    async def send_quietly(self, text: str) -> None:
        """Send what the stream can do without."""
        with contextlib.suppress(CodecError, ClientGoneError):
            await self.send(text)

    async def close(self, error: CodecError | None) -> None:
        """Say why, if there is a why, and close; a client that does not read costs no more than a moment."""
        with contextlib.suppress(ClientGoneError, OSError, RuntimeError, WebSocketDisconnect):
            if error is None:
                await self.websocket.close(CLOSE_DONE, "done")
                return
            log.info("stream refused: %s: %s", error.code, error)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_WORDS_S):
                    await self._send_now(error_text(error))
            await self.websocket.close(answer_for(error).close_code, error.code)

    async def _send_now(self, message: str | bytes) -> None:
        kind = "text" if isinstance(message, str) else "bytes"
        try:
            await self.websocket.send({"type": "websocket.send", kind: message})
        except (OSError, RuntimeError, WebSocketDisconnect) as cause:
            raise ClientGoneError from cause
