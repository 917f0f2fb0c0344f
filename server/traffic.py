"""The outermost layer of the application: counts what comes and goes, logs requests, and stops floods of handshakes early."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from codec_core.errors import InternalError
from server.client_address import client_of
from server.errors import DrainingError, HandshakeRateError
from server.logs import bind_to_log, event
from server.metrics import Metrics
from server.rate_limit import HandshakeGate
from server.refusal import ERROR_HEADER, refusal_response
from server.status_map import STATUS_MAP

PROBES: Final = ("/healthz", "/readyz", "/metrics")
"""Asked every few seconds by machines; logged at level debug."""
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
"""Told apart in metrics; a client may send any other word, and each would be a series of its own."""

log = logging.getLogger("mimi.server.http")


class TrafficMiddleware:
    """Wraps everything.

    Args:
        app: the rest of the application.
        metrics: is told.
        gate: counts handshakes by client.
        going_down: makes the error for those who are cut off when their time is over and the service goes down.

    """

    def __init__(self, app: ASGIApp, metrics: Metrics, gate: HandshakeGate, going_down: Callable[[], DrainingError]) -> None:
        self._app = app
        self._metrics = metrics
        self._gate = gate
        self._going_down = going_down

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection or request."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        client = client_of(HTTPConnection(scope))
        meter = _Meter(self._metrics, scope, receive, send)
        bind_to_log(client=client)
        try:
            if scope["type"] == "websocket":
                await self._serve_websocket(scope, meter, client)
            else:
                await self._serve_http(scope, meter)
        except asyncio.CancelledError:
            # Nobody but uvicorn cancels this task, when it has waited long enough for it to end.
            log.warning("a connection was cut off: its time was over when the service went down")
            refusal = refusal_response(self._going_down(), {"connection": "close"})
            if not meter.has_answered and scope["type"] == "http":
                await refusal(scope, meter.receive, meter.send)
            elif not meter.has_answered:
                await WebSocket(scope, meter.receive, meter.send).send_denial_response(refusal)

    async def _serve_websocket(self, scope: Scope, meter: _Meter, client: str) -> None:
        try:
            self._gate.pass_one(client)
        except HandshakeRateError as error:
            self._metrics.refused("handshake", error.code)
            await WebSocket(scope, meter.receive, meter.send).send_denial_response(refusal_response(error))
            return
        await self._app(scope, meter.receive, meter.send)

    async def _serve_http(self, scope: Scope, meter: _Meter) -> None:
        started_s = time.monotonic()
        try:
            await self._app(scope, meter.receive, meter.send)
        except Exception:
            # Answered by the layer outside of this one, which turns it into the error that it is.
            meter.status = STATUS_MAP[InternalError.code].http_status
            self._metrics.error("http", InternalError.code)
            raise
        finally:
            method = scope["method"] if scope["method"] in METHODS else "other"
            self._metrics.answered(method, meter.status)
            level = logging.DEBUG if scope["path"] in PROBES else logging.INFO
            duration_ms = round((time.monotonic() - started_s) * 1000, 1)
            facts = {"method": method, "path": scope["path"][:256], "status": meter.status, "duration_ms": duration_ms}
            event(log, level, "request", **facts, received_bytes=meter.received_bytes, sent_bytes=meter.sent_bytes)


class _Meter:
    """Stands between the application and one connection."""

    def __init__(self, metrics: Metrics, scope: Scope, receive: Receive, send: Send) -> None:
        self._metrics = metrics
        self._transport = scope["type"]
        self._receive = receive
        self._send = send
        self._error_told = False
        self.received_bytes = 0
        self.sent_bytes = 0
        self.status = 0
        self.has_answered = False

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            # The WebSocket layer's own refusals come this way.
            self._tell_error(message.get("reason"))
        size_bytes = _size_bytes(message)
        self.received_bytes += size_bytes
        self._metrics.received(self._transport, size_bytes)
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "websocket.close":
            self._tell_error(message.get("reason"))
        elif message["type"] in ("http.response.start", "websocket.http.response.start"):
            self.status = message["status"]
            named = (value for name, value in message.get("headers", ()) if name == ERROR_HEADER.encode())
            self._tell_error(next(named, b"").decode())
        self.has_answered = True
        size_bytes = _size_bytes(message)
        self.sent_bytes += size_bytes
        self._metrics.sent(self._transport, size_bytes)
        await self._send(message)

    def _tell_error(self, code: str | None) -> None:
        if code in STATUS_MAP and not self._error_told:
            self._error_told = True
            self._metrics.error(self._transport, code)


def _size_bytes(message: Message) -> int:
    return len(message.get("bytes") or message.get("text") or message.get("body") or b"")
