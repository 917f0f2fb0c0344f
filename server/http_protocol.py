"""uvicorn's HTTP connection, with what it lacks against peers that connect and then say nothing, or hardly anything.

A connection has a limited time for each request to arrive, from its first byte to the end of its headers, and the number of
connections is limited, of all and of each address: beyond it a peer is told so and hung up on, instead of taking the last file
descriptor. Bodies are timed by whoever reads them.
"""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from codec_core.errors import CodecError
from server.address_connections import AddressConnections
from server.errors import ConnectionsError, RequestTimeoutError
from server.metrics import Metrics
from server.refusal import ERROR_HEADER
from server.settings import Settings
from server.status_map import answer_for, error_fields


class BoundedHttpProtocol(H11Protocol):
    """One connection; see the module."""

    settings: ClassVar[Settings]
    metrics: ClassVar[Metrics]
    most_connections: ClassVar[int]
    addresses: ClassVar[AddressConnections]
    _waiting: asyncio.TimerHandle | None = None
    _counted_as: str | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._counted_as = self.addresses.opened(self.client[0] if self.client else "")
        try:
            self._check_number(self._counted_as)
        except CodecError as error:
            self._hang_up(error, answer=True)
            return
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take bytes, and wait on for as long as they are no whole request."""
        super().data_received(data)
        # After an upgrade the connection is another protocol's.
        if self.transport.get_protocol() is self and self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._wait()
        else:
            self._wait_no_more()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._wait_no_more()
        self._count_no_more()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Leave the connection to the other protocol, which counts it by itself."""
        super().handle_websocket_upgrade(event)
        self._count_no_more()

    def _check_number(self, client: str) -> None:
        if len(self.connections) > self.most_connections:
            found = f"{len(self.connections) - 1} of {self.most_connections} connections"
            raise ConnectionsError("service", found, "fewer of them", retry_after_ms=self.settings.retry_after_ms)
        self.addresses.check(client)

    def _count_no_more(self) -> None:
        if self._counted_as is not None:
            self.addresses.closed(self._counted_as)
            self._counted_as = None

    def _wait(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(self.settings.request_timeout_ms / 1000, self._request_timed_out)

    def _wait_no_more(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _request_timed_out(self) -> None:
        self._waiting = None
        begun = bool(self.conn.trailing_data[0])
        expected = f"its headers within {self.settings.request_timeout_ms} ms"
        # Who sent nothing may be a browser's connection in reserve, which no answer is owed to.
        self._hang_up(RequestTimeoutError("request", found="a part" if begun else "nothing", expected=expected), answer=begun)

    def _hang_up(self, error: CodecError, *, answer: bool) -> None:
        self.metrics.dropped(error.code)
        if answer:
            self.metrics.error("http", error.code)
            self.transport.write(_raw_response(error))
        self.transport.close()


def _raw_response(error: CodecError) -> bytes:
    status = answer_for(error).http_status
    body = json.dumps({"error": error_fields(error)}).encode()
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\n{ERROR_HEADER}: {error.code}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body


def bounded_http_protocol(
    settings: Settings, metrics: Metrics, most_connections: int, addresses: AddressConnections
) -> type[Any]:
    """Make the connection class of one service, which may have this many of them; ``addresses`` counts those of each peer."""
    facts = {"settings": settings, "metrics": metrics, "most_connections": most_connections, "addresses": addresses}
    return type("BoundedHttpProtocol", (BoundedHttpProtocol,), facts)
