"""``/v1/stream``: the way in for WebSockets, and what is said to those that are none."""

from __future__ import annotations

import logging

from fastapi import APIRouter, Request, Response, WebSocket

from codec_core.errors import CodecError
from server.client_address import client_of
from server.errors import NotFoundError, UpgradeRequiredError
from server.origin import check_origin
from server.refusal import refusal_response
from server.service import service_of
from server.stream_connection import StreamConnection
from server.wire_settings import quoted

STREAM_PATH = "/v1/stream"

log = logging.getLogger("mimi.server.stream")
router = APIRouter()


@router.websocket(STREAM_PATH)
async def stream(websocket: WebSocket) -> None:
    """Serve one connection from handshake to close."""
    service = service_of(websocket)
    try:
        check_origin(websocket, service.settings)
        if service.settings.deny_handshakes:
            service.registry.require_place("stream", client_of(websocket))
    except CodecError as error:
        await _deny(websocket, error)
        return
    await StreamConnection(websocket, service).run()


@router.websocket("/{path:path}")
async def no_stream(websocket: WebSocket) -> None:
    """Refuse a handshake to any other path."""
    await _deny(websocket, NotFoundError("path", found=quoted(websocket.url.path), expected=STREAM_PATH))


@router.api_route(STREAM_PATH, methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"], include_in_schema=False)
async def no_handshake(request: Request) -> Response:
    """Say to a plain request what this address is for."""
    found = f"a plain {request.method}"
    error = UpgradeRequiredError("request", found=found, expected=f"a WebSocket handshake, ws://HOST:PORT{STREAM_PATH}")
    return refusal_response(error, {"upgrade": "websocket", "connection": "upgrade"})


async def _deny(websocket: WebSocket, error: CodecError) -> None:
    """Answer a handshake with an HTTP refusal."""
    log.info("stream refused: %s: %s", error.code, error)
    await websocket.send_denial_response(refusal_response(error))
