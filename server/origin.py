"""Which browser pages may use the service: those of its own origin, and those on the allow-list."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from server.errors import ForbiddenOriginError
from server.wire_settings import quoted

ANY_ORIGIN = "*"


def check_origin(connection: HTTPConnection, allowed: tuple[str, ...]) -> None:
    """Pass a connection without ``Origin`` (no browser), of the service's own origin, or of an allowed one.

    Raises:
        ForbiddenOriginError: any other origin.

    """
    origin = connection.headers.get("origin")
    if origin is None or ANY_ORIGIN in allowed or origin in allowed:
        return
    host = connection.headers.get("host", "")
    if host and urlsplit(origin).netloc.lower() == host.lower():
        return
    raise ForbiddenOriginError("Origin", found=quoted(origin), expected="the service's own, or one on the allow-list")
