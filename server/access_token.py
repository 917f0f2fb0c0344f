"""Tokens: leave for a browser, which can put no key into the header of a WebSocket, to use a part of the service for a while.

A token is ``1.CLAIMS.SIGNATURE``: base64url without padding of a JSON object ``{scope, expires_ms, key}``, and of the
HMAC-SHA256 of all before the last point. It goes into the query as ``token``, which the service takes out before anything is
logged. Whoever holds it may use it until it expires; a stream that it opened goes on after that.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from dataclasses import asdict, dataclass
from typing import Final

from server.errors import TokenExpiredError, TokenScopeError, UnauthorizedError

SCOPES: Final = {
    "stream": ("/v1/stream",),
    "convert": ("/v1/encode", "/encode", "/v1/decode", "/decode"),
    "info": ("/v1/info",),
}
"""What a token can be good for, with the paths of each."""
TOKEN_FIELD: Final = "token"  # noqa: S105 - a name, no secret
EXPECTED: Final = "an unchanged one of POST /v1/token"
_VERSION: Final = "1"
_MOST_CHARS: Final = 1024


@dataclass(frozen=True)
class TokenClaims:
    """What a token says."""

    scope: tuple[str, ...]
    """Keys of :data:`SCOPES`."""
    expires_ms: int
    """Unix time."""
    key: str
    """The name of the key that it was asked for with; with that key it ends. Empty where the service has none."""


def sign_token(claims: TokenClaims, signing_key: bytes) -> str:
    """Make the text of a token."""
    text = f"{_VERSION}.{_encode(json.dumps(asdict(claims), separators=(',', ':')).encode())}"
    return f"{text}.{_encode(_signature(text, signing_key))}"


def read_token(token: str, signing_key: bytes, now_ms: int) -> TokenClaims:
    """Undo :func:`sign_token`. Nothing in a token is looked at before its signature.

    Raises:
        UnauthorizedError: malformed, or not signed with this key.
        TokenExpiredError: it was good until before ``now_ms``.

    """
    text, _, signature = token.rpartition(".")
    try:
        is_signed = len(token) <= _MOST_CHARS and hmac.compare_digest(_decode(signature), _signature(text, signing_key))
    except (ValueError, binascii.Error):
        is_signed = False
    version, _, claims = text.partition(".")
    if not is_signed or version != _VERSION:
        raise UnauthorizedError("token", found="another signature", expected=EXPECTED)
    fields = json.loads(_decode(claims))
    if fields["expires_ms"] <= now_ms:
        found = f"one that expired {now_ms - fields['expires_ms']} ms ago"
        raise TokenExpiredError("token", found=found, expected="a new one of POST /v1/token")
    return TokenClaims(tuple(fields["scope"]), fields["expires_ms"], fields["key"])


def check_scope(claims: TokenClaims, path: str) -> None:
    """Pass a token that is good for a path.

    Raises:
        TokenScopeError: it is not.

    """
    if not any(path in SCOPES.get(scope, ()) for scope in claims.scope):
        fitting = [scope for scope, paths in SCOPES.items() if path in paths]
        expected = f"scope {fitting[0]}" if fitting else "a key: no token is good for this path"
        raise TokenScopeError("token", found=f"scope {','.join(claims.scope)}", expected=expected)


def _signature(text: str, signing_key: bytes) -> bytes:
    return hmac.digest(signing_key, text.encode("utf-8", "surrogateescape"), hashlib.sha256)


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    return base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), b"-_", validate=True)
