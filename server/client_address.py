"""Which client a connection comes from, as far as places and rates are counted by it."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Final

from starlette.requests import HTTPConnection

from codec_core.errors import SettingError

IPV6_PREFIX_BITS: Final = 64
"""What one subscriber has of IPv6; single addresses of it cost nothing and are not told apart."""
UNKNOWN: Final = "unknown"
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def client_of(connection: HTTPConnection) -> str:
    """Name the client: its IPv4 address, or the /64 of its IPv6 address.

    Behind a trusted proxy (``MIMI_TRUSTED_PROXIES``) it is the address that the proxy vouches for; anybody else's
    ``X-Forwarded-For`` is not looked at. What is no address counts as one client, ``unknown``.
    """
    return client_name(connection.client.host if connection.client else "")


def client_name(host: str) -> str:
    """Name the client at this address; see :func:`client_of`."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return UNKNOWN
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((int(address), IPV6_PREFIX_BITS), strict=False))
    return str(address)


def is_in(host: str, networks: Iterable[Network]) -> bool:
    """Tell whether a peer's address is in one of these networks."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return any(address in network for network in networks)


def checked_proxies(proxies: Iterable[str]) -> list[str]:
    """Return the trusted proxies as uvicorn takes them.

    Raises:
        SettingError: one that is neither an address nor a network. Whoever trusts everybody lets a client call itself anything.

    """
    checked = []
    for proxy in proxies:
        try:
            ipaddress.ip_network(proxy)
        except ValueError as cause:
            expected = "IP addresses or networks, as 10.0.0.0/8, comma-separated"
            raise SettingError("MIMI_TRUSTED_PROXIES", found=repr(proxy), expected=expected) from cause
        checked.append(proxy)
    return checked
