"""How many TCP connections each address has open, handshakes that never come to an end among them.

Only the peer's address is known that early. A trusted proxy (``MIMI_TRUSTED_PROXIES``) has many clients behind it, each counted
by the address that it vouches for once it wants a stream, and may have as many connections as it likes.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterable

from server.client_address import client_name, is_in
from server.errors import AddressConnectionsError


class AddressConnections:
    """Counts open connections. Used from one event loop.

    Args:
        most: connections that one address may have, an IPv6 /64 counting as one.
        trusted_proxies: addresses and networks that are not counted.
        retry_after_ms: what a refused peer is told to wait.

    """

    def __init__(self, most: int, trusted_proxies: Iterable[str], retry_after_ms: int) -> None:
        self._most = most
        self._trusted = tuple(map(ipaddress.ip_network, trusted_proxies))
        self._retry_after_ms = retry_after_ms
        self._open: Counter[str] = Counter()

    def opened(self, host: str) -> str:
        """Count a connection of this peer, and return what :meth:`closed` is to be told; every connection is closed once."""
        client = "" if is_in(host, self._trusted) else client_name(host)
        if client:
            self._open[client] += 1
        return client

    def closed(self, client: str) -> None:
        """Count a connection no more."""
        self._open[client] -= 1
        if self._open[client] <= 0:
            del self._open[client]

    def check(self, client: str) -> None:
        """Let a client be that was counted already.

        Raises:
            AddressConnectionsError: it has more than it may.

        """
        if self._open[client] > self._most:
            found = f"{self._open[client] - 1} of {self._most} connections"
            expected = "fewer of them (a proxy in front is to be named in MIMI_TRUSTED_PROXIES)"
            raise AddressConnectionsError(f"connections from {client}", found, expected, retry_after_ms=self._retry_after_ms)
