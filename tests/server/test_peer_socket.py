from __future__ import annotations

import socket
import struct

from server.peer_socket import is_reset


def test_a_reset_shows_although_what_came_before_is_unread():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname())
        accepted, _ = listening.accept()
    with accepted:
        client.sendall(bytes(10_000))
        assert not is_reset(accepted)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        assert is_reset(accepted)
        assert len(accepted.recv(10_000)) > 0


def test_a_peer_that_only_stopped_sending_is_there():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname())
        accepted, _ = listening.accept()
    with accepted, client:
        client.shutdown(socket.SHUT_WR)
        assert accepted.recv(1) == b""
        assert not is_reset(accepted)


def test_what_is_no_connection_any_more_is_not_asked():
    assert not is_reset(None)
    closed = socket.socket()
    closed.close()
    assert not is_reset(closed)
    with socket.socket(socket.AF_UNIX) as local:
        assert not is_reset(local)
