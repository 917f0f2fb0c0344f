"""Whether the peer of a TCP connection is still there, asked of the kernel where nobody reads the connection."""

from __future__ import annotations

import socket
from typing import Final

TCP_CLOSE: Final = 7
"""Linux's number of the state of a connection that is no more: reset by the peer, or given up."""


def is_reset(connection: socket.socket | None) -> bool:
    """Tell whether a connection was reset.

    A socket that is not read shows it to nobody: what had come before is still there to be read, and may be long. Where the
    kernel cannot be asked the answer is no.
    """
    tcp_info = getattr(socket, "TCP_INFO", None)
    if connection is None or tcp_info is None or connection.fileno() < 0:
        return False
    try:
        return connection.getsockopt(socket.IPPROTO_TCP, tcp_info, 1)[0] == TCP_CLOSE
    except OSError:
        return False
