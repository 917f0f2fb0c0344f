"""WebSocket byte by byte, for tests that say what no library would."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from typing import Any

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
FINAL = 0x80
MASK = b"\x12\x34\x56\x78"
KEY = "dGhlIHNhbXBsZSBub25jZQ=="
HEADERS = {
    "Host": "x",
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Key": KEY,
    "Sec-WebSocket-Version": "13",
}


def frame(opcode: int, payload: bytes = b"", *, final: bool = True, reserved: int = 0, mask: bytes | None = MASK) -> bytes:
    head = bytes([(FINAL if final else 0) | reserved | opcode])
    size = len(payload)
    bit = 0 if mask is None else 0x80
    if size < 126:
        head += bytes([bit | size])
    else:
        head += bytes([bit | 126]) + struct.pack(">H", size) if size < 1 << 16 else bytes([bit | 127]) + struct.pack(">Q", size)
    if mask is None:
        return head + payload
    return head + mask + bytes(byte ^ mask[index % 4] for index, byte in enumerate(payload))


@dataclass
class RawStream:
    """One connection past its handshake; what comes is read frame by frame."""

    connection: socket.socket
    received: bytes = b""

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def _take(self, size: int) -> bytes:
        while len(self.received) < size:
            data = self.connection.recv(65_536)
            if not data:
                raise EOFError(self.received)
            self.received += data
        taken, self.received = self.received[:size], self.received[size:]
        return taken

    def frame(self) -> tuple[int, bytes]:
        """Read one frame: a server masks none, leaves the reserved bits alone and here fragments nothing."""
        first, size = self._take(2)
        assert first & 0x70 == 0
        assert first & FINAL
        assert size < 0x80, "a masked frame from a server"
        if size >= 126:
            size = int.from_bytes(self._take(2 if size == 126 else 8), "big")
        return first & 0xF, self._take(size)

    def until(self, opcode: int) -> bytes:
        while True:
            found, payload = self.frame()
            if found == opcode:
                return payload
            assert found != CLOSE, payload

    def closing(self) -> tuple[int, str]:
        """Read to the close frame and beyond: after it nothing may come but the end."""
        while True:
            opcode, payload = self.frame()
            if opcode == CLOSE:
                break
        assert len(payload) != 1
        code = int.from_bytes(payload[:2], "big") if payload else 1005
        return code, payload[2:].decode()

    def at_its_end(self) -> bool:
        try:
            return not self.received and not self.connection.recv(1)
        except ConnectionResetError:
            return True


def shake(path: str = "/v1/stream?levels=1", headers: dict[str, str | None] | None = None, version: str = "1.1") -> bytes:
    fields = {name: value for name, value in ({**HEADERS} | (headers or {})).items() if value is not None}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"GET {path} HTTP/{version}\r\n{lines}\r\n".encode()


def connected(service: Any) -> socket.socket:
    host, port = service.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=30)


def answered(connection: socket.socket) -> tuple[bytes, bytes]:
    """Read an HTTP answer; returns its head and what came after it."""
    received = b""
    while b"\r\n\r\n" not in received:
        data = connection.recv(65_536)
        assert data, received
        received += data
    head, _, rest = received.partition(b"\r\n\r\n")
    return head, rest
