"""Who may use the service: whoever sends one of its keys, or a token got with one; anybody, where it has no keys."""

from __future__ import annotations

import time
from typing import Final
from urllib.parse import unquote_plus

from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from codec_core.errors import CodecError
from server.access_token import TOKEN_FIELD, TokenClaims, check_scope, read_token, sign_token
from server.api_keys import ApiKeys
from server.errors import UnauthorizedError
from server.moshi_key import adopt_key
from server.refusal import refusal_response
from server.shared_secret import SharedSecret

OPEN_PATHS: Final = ("/healthz", "/readyz", "/", "/docs", "/openapi.json", "/asyncapi.json")
"""Probes, which have no key, and the pages and descriptions, which are the same in every installation."""
OPEN_FOLDER: Final = "/web/"
"""The files that the pages are made of."""
KEY_NAME: Final = "mimi.key"
"""Where a request's scope has the name of the key that it came with."""


class Access:
    """The keys and tokens of one service.

    Args:
        keys: its keys.
        secret: what its tokens are signed with.

    """

    def __init__(self, keys: ApiKeys, secret: SharedSecret) -> None:
        self._keys = keys
        self._signing_key = secret.key("access token")

    def issue(self, scope: tuple[str, ...], lifetime_ms: int, key_name: str) -> str:
        """Make a token, good from now on."""
        return sign_token(TokenClaims(scope, _now_ms() + lifetime_ms, key_name), self._signing_key)

    def check(self, scope: Scope, tokens: list[str]) -> None:
        """Pass a connection, and note in it which key it came with.

        Args:
            scope: the connection.
            tokens: what its query had of them; looked at where no key is right, since a proxy may add a header of its own.

        Raises:
            UnauthorizedError, TokenExpiredError, TokenScopeError: neither key nor token is right.

        """
        if not self._keys or _is_open(scope["path"]):
            return
        try:
            scope[KEY_NAME] = self._keys.check(scope["headers"])
        except UnauthorizedError:
            if not tokens:
                raise
            self._check_token(tokens, scope["path"])

    def _check_token(self, tokens: list[str], path: str) -> None:
        if len(tokens) > 1:
            raise UnauthorizedError(TOKEN_FIELD, found="the name twice", expected="once")
        claims = read_token(tokens[0], self._signing_key, _now_ms())
        if not self._keys.knows(claims.key):
            raise UnauthorizedError(TOKEN_FIELD, found="one of a key that is no more", expected="one of a key of today")
        check_scope(claims, path)


class AccessMiddleware:
    """Refuses what comes without leave: a request by its answer, a WebSocket by an answer instead of a handshake."""

    def __init__(self, app: ASGIApp, access: Access, moshi_paths: tuple[str, ...] = ()) -> None:
        self._app = app
        self._access = access
        self._moshi_paths = moshi_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check one connection, then hand it on."""
        if scope["type"] in ("http", "websocket"):
            if scope["path"] in self._moshi_paths:
                adopt_key(scope)
            try:
                self._access.check(scope, _take_tokens(scope))
            except CodecError as error:
                answer = refusal_response(error)
                if scope["type"] == "websocket":
                    await WebSocket(scope, receive, send).send_denial_response(answer)
                else:
                    await answer(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _take_tokens(scope: Scope) -> list[str]:
    """Take tokens out of the query, in place: they are no setting, and the address is logged afterwards."""
    parts = scope["query_string"].split(b"&")
    name = TOKEN_FIELD.encode() + b"="
    scope["query_string"] = b"&".join(part for part in parts if not part.startswith(name))
    return [unquote_plus(part[len(name) :].decode("latin-1")) for part in parts if part.startswith(name)]


def _is_open(path: str) -> bool:
    return path in OPEN_PATHS or path.startswith(OPEN_FOLDER)


def _now_ms() -> int:
    return int(time.time() * 1000)
