"""Who may use the service: whoever sends one of its keys, when it has any.

A key goes into the header ``Authorization: Bearer KEY`` or ``X-API-Key: KEY``, of requests and of WebSocket handshakes alike;
never into an address, which is logged on its way. Everything asks for it but :data:`OPEN_PATHS`.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Iterator
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from server.errors import UnauthorizedError
from server.refusal import refusal_response

OPEN_PATHS: Final = ("/healthz", "/readyz", "/", "/docs", "/openapi.json")
"""Probes, which have no key, and the pages for a person, which are the same in every installation."""
OPEN_FOLDER: Final = "/web/"
"""The files that the pages are made of."""
EXPECTED: Final = "the header Authorization: Bearer KEY, or X-API-Key: KEY"


class ApiKeys:
    """A set of keys; only their digests are held, and comparing takes the same time whichever matches, if any."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._digests = [_digest(key.encode()) for key in keys]

    def check(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Pass headers that hold one of the keys; another ``Authorization`` beside it may be a proxy's.

        Args:
            headers: names in lower case, and values.

        Raises:
            UnauthorizedError: no key, or only unknown ones.

        """
        sent = [_digest(key) for key in _keys_of(headers)]
        if not sent:
            raise UnauthorizedError("key", found="none", expected=EXPECTED)
        if sum(hmac.compare_digest(one, known) for one in sent for known in self._digests) == 0:
            raise UnauthorizedError("key", found="an unknown one", expected=EXPECTED)


class ApiKeyMiddleware:
    """Refuses what comes without a key: a request with 401, a WebSocket with 401 instead of a handshake."""

    def __init__(self, app: ASGIApp, keys: ApiKeys) -> None:
        self._app = app
        self._keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check one connection, then hand it on."""
        if scope["type"] in ("http", "websocket") and not _is_open(scope["path"]):
            try:
                self._keys.check(scope["headers"])
            except UnauthorizedError as error:
                answer = refusal_response(error, {"www-authenticate": "Bearer"})
                if scope["type"] == "websocket":
                    await WebSocket(scope, receive, send).send_denial_response(answer)
                else:
                    await answer(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _keys_of(headers: Iterable[tuple[bytes, bytes]]) -> Iterator[bytes]:
    for name, value in headers:
        if name == b"x-api-key":
            yield value.strip()
        elif name == b"authorization":
            scheme, _, key = value.strip().partition(b" ")
            if scheme.lower() == b"bearer":
                yield key.strip()


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()


def _is_open(path: str) -> bool:
    return path in OPEN_PATHS or path.startswith(OPEN_FOLDER)
