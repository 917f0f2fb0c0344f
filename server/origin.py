"""Which browser pages may use the service: those of its own origin, and those on the allow-list."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from server.errors import ForbiddenOriginError
from server.settings import Settings
from server.wire_settings import quoted

ANY_ORIGIN = "*"
LOCAL_NAME = "localhost"


def check_origin(connection: HTTPConnection, settings: Settings) -> None:
    """Pass a connection without ``Origin`` (no browser), of the service's own origin, or of an allowed one.

    Without keys, an origin counts as the service's own only where its host is an IP address, ``localhost`` or the configured
    host: any other name may be a stranger's that was made to lead here (DNS rebinding), and has to be on the allow-list.

    Raises:
        ForbiddenOriginError: any other origin.

    """
    origin = connection.headers.get("origin")
    allowed = settings.origin_allow_list
    if origin is None or ANY_ORIGIN in allowed or origin in allowed:
        return
    if _is_own(origin, connection.headers.get("host", ""), settings):
        return
    raise ForbiddenOriginError("Origin", found=quoted(origin), expected="the service's own, or one on the allow-list")


def _is_own(origin: str, host: str, settings: Settings) -> bool:
    try:
        parts = urlsplit(origin)
        name = parts.hostname
    except ValueError:
        return False
    if not name or parts.netloc.lower() != host.lower():
        return False
    return settings.asks_for_key or name in (LOCAL_NAME, settings.host.lower()) or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
