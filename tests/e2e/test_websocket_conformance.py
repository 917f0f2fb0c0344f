"""RFC 6455 at the stream's endpoint, byte by byte over raw sockets: what every peer may send, and what none may."""

from __future__ import annotations

import json
import socket
import struct
import zlib
from collections.abc import Callable, Iterator

import pytest

from tests.e2e.raw_websocket import (
    BINARY,
    CLOSE,
    FINAL,
    MASK,
    PING,
    PONG,
    TEXT,
    RawStream,
    answered,
    connected,
    frame,
    shake,
)

FLUSH = b'{"type":"flush"}'
ACCEPTED = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
"""What RFC 6455 says the answer to the key of its example is."""
PROTOCOL_ERROR, INVALID_DATA, TOO_BIG = 1002, 1007, 1009


@pytest.fixture
def opened(service) -> Iterator[Callable[..., RawStream]]:
    """opened(path) is a connection after ``ready``."""
    connections = []

    def opened(path: str = "/v1/stream?levels=1") -> RawStream:
        connection = connected(service)
        connections.append(connection)
        connection.sendall(shake(path))
        head, rest = answered(connection)
        assert head.startswith(b"HTTP/1.1 101 "), head
        raw = RawStream(connection, rest)
        assert json.loads(raw.until(TEXT))["type"] == "ready"
        return raw

    yield opened
    for connection in connections:
        connection.close()


def lives(raw: RawStream) -> None:
    raw.send(frame(TEXT, b'{"type":"ping","id":77}'))
    while json.loads(raw.until(TEXT)).get("id") != 77:
        pass


def test_the_handshake_is_the_standard_s(service):
    with connected(service) as connection:
        connection.sendall(shake())
        head, _ = answered(connection)
    lines = head.decode().lower().split("\r\n")
    assert lines[0].startswith("http/1.1 101")
    assert f"sec-websocket-accept: {ACCEPTED}".lower() in lines
    assert "upgrade: websocket" in lines
    assert not [line for line in lines if line.startswith("sec-websocket-protocol")]


BAD_HANDSHAKES: dict[str, tuple[dict[str, str | None], int]] = {
    "no key": ({"Sec-WebSocket-Key": None}, 400),
    "a key that is not base64": ({"Sec-WebSocket-Key": "!!!!"}, 400),
    "a key of 15 bytes": ({"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAA"}, 400),
    "no version": ({"Sec-WebSocket-Version": None}, 400),
    "version 8": ({"Sec-WebSocket-Version": "8"}, 400),
    "version in words": ({"Sec-WebSocket-Version": "thirteen"}, 400),
    "another upgrade": ({"Upgrade": "h2c"}, 426),
    "no upgrade": ({"Upgrade": None}, 426),
    "no connection": ({"Connection": "close"}, 426),
}


@pytest.mark.parametrize("name", BAD_HANDSHAKES)
def test_a_bad_handshake_is_no_handshake(service, name):
    headers, status = BAD_HANDSHAKES[name]
    with connected(service) as connection:
        connection.sendall(shake(headers=headers))
        head, _ = answered(connection)
    assert int(head.split()[1]) == status, head


def test_words_of_the_handshake_in_any_case(service):
    for headers in ({"Upgrade": "WebSocket", "Connection": "keep-alive, UPGRADE"}, {"Sec-WebSocket-Version": " 13 "}):
        with connected(service) as connection:
            connection.sendall(shake(headers=headers))
            assert answered(connection)[0].startswith(b"HTTP/1.1 101 ")


@pytest.mark.parametrize("offer", ["permessage-deflate", "permessage-deflate; client_max_window_bits", "x-unknown; a=1"])
def test_no_extension_is_agreed(service, offer):
    """A compressed message may hold a thousand times its length; none is ever unpacked."""
    with connected(service) as connection:
        connection.sendall(shake(headers={"Sec-WebSocket-Extensions": offer}))
        head, rest = answered(connection)
        assert b"sec-websocket-extensions" not in head.lower()
        raw = RawStream(connection, rest)
        raw.until(TEXT)
        packer = zlib.compressobj(wbits=-15)
        bomb = packer.compress(bytes(8 << 20)) + packer.flush(zlib.Z_SYNC_FLUSH)
        raw.send(frame(BINARY, bomb, reserved=0x40))
        assert raw.closing()[0] == PROTOCOL_ERROR


def test_who_does_not_wait_for_the_answer_harms_only_what_it_sent(service):
    """A client must wait for the handshake's answer; what it sends before that is nobody's."""
    with connected(service) as connection:
        connection.sendall(shake() + frame(TEXT, b'{"type":"ping","id":5}'))
        head, rest = answered(connection)
        assert head.startswith(b"HTTP/1.1 101 ")
        raw = RawStream(connection, rest)
        raw.until(TEXT)
        lives(raw)


@pytest.mark.parametrize("piece", [1, 2, 7])
def test_frames_may_come_in_any_pieces(opened, piece):
    raw = opened()
    data = frame(BINARY, bytes(3840)) + frame(PING, b"p") + frame(TEXT, FLUSH)
    raw.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for start in range(0, 64, piece):
        raw.send(data[start : min(start + piece, 64)])
    raw.send(data[64:])
    assert len(raw.until(BINARY)) == 18
    assert json.loads(raw.until(TEXT))["type"] == "flushed"


@pytest.mark.parametrize("masks", [b"\0\0\0\0", b"\xff\xff\xff\xff"])
def test_any_mask_is_undone(opened, masks):
    raw = opened()
    raw.send(frame(TEXT, b'{"type":"ping","id":"m"}', mask=masks))
    assert json.loads(raw.until(TEXT)) == {"type": "pong", "id": "m"}


@pytest.mark.parametrize("parts", [2, 3, len(FLUSH)])
def test_a_fragmented_message_is_one_message(opened, parts):
    raw = opened()
    size = -(-len(FLUSH) // parts)
    pieces = [FLUSH[start : start + size] for start in range(0, len(FLUSH), size)]
    for index, piece in enumerate(pieces):
        raw.send(frame(TEXT if index == 0 else 0, piece, final=index == len(pieces) - 1))
        if index < len(pieces) - 1:
            # Control frames may stand between the fragments, and are answered there.
            raw.send(frame(PING, bytes([index])))
            assert raw.until(PONG) == bytes([index])
    assert json.loads(raw.until(TEXT))["type"] == "flushed"


def test_a_character_may_be_split_over_fragments(opened):
    raw = opened()
    text = json.dumps({"type": "ping", "id": "ä"}, ensure_ascii=False).encode()
    cut = text.index(b"\xa4")
    raw.send(frame(TEXT, text[:cut], final=False) + frame(0, b"", final=False) + frame(0, text[cut:]))
    assert json.loads(raw.until(TEXT))["id"] == "ä"


@pytest.mark.parametrize("payload", [b"", b"x", bytes(range(125))])
def test_a_ping_is_answered_by_its_own_payload(opened, payload):
    raw = opened()
    raw.send(frame(PING, payload))
    assert raw.until(PONG) == payload


def test_pongs_that_nobody_asked_for_are_passed_over(opened):
    raw = opened()
    raw.send(frame(PONG) + frame(PONG, b"never asked") * 20)
    lives(raw)


def oversize(opcode: int, size: int) -> bytes:
    """Only the head of a frame that claims so much."""
    return bytes([FINAL | opcode, 0x80 | 127]) + struct.pack(">Q", size) + MASK


VIOLATIONS: dict[str, tuple[bytes, int]] = {
    "unmasked text": (frame(TEXT, FLUSH, mask=None), PROTOCOL_ERROR),
    "unmasked audio": (frame(BINARY, bytes(3840), mask=None), PROTOCOL_ERROR),
    "unmasked ping": (frame(PING, b"x", mask=None), PROTOCOL_ERROR),
    "unmasked close": (frame(CLOSE, b"", mask=None), PROTOCOL_ERROR),
    **{f"reserved bit {bit:#x}": (frame(BINARY, b"\0\0", reserved=bit), PROTOCOL_ERROR) for bit in (0x10, 0x20, 0x40, 0x70)},
    "reserved bit of a ping": (frame(PING, b"", reserved=0x40), PROTOCOL_ERROR),
    **{f"opcode {opcode}": (frame(opcode, b"x"), PROTOCOL_ERROR) for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15)},
    "fragmented ping": (frame(PING, b"x", final=False), PROTOCOL_ERROR),
    "fragmented close": (frame(CLOSE, struct.pack(">H", 1000), final=False), PROTOCOL_ERROR),
    "ping of 126 bytes": (frame(PING, bytes(126)), PROTOCOL_ERROR),
    "pong of 126 bytes": (frame(PONG, bytes(126)), PROTOCOL_ERROR),
    "close of 126 bytes": (frame(CLOSE, struct.pack(">H", 1000) + b"x" * 124), PROTOCOL_ERROR),
    "continuation of nothing": (frame(0, b"x"), PROTOCOL_ERROR),
    "a message within another": (frame(TEXT, b"{", final=False) + frame(TEXT, FLUSH), PROTOCOL_ERROR),
    "audio within text": (frame(TEXT, b"{", final=False) + frame(BINARY, b"\0\0"), PROTOCOL_ERROR),
    "close of one byte": (frame(CLOSE, b"\x03"), PROTOCOL_ERROR),
    "a length past 2^63": (oversize(BINARY, 1 << 63), TOO_BIG),
    "a length of 2^63 - 1": (oversize(BINARY, (1 << 63) - 1), TOO_BIG),
    "a length of 4 GiB": (oversize(TEXT, 1 << 32), TOO_BIG),
    "one byte too many": (frame(BINARY, bytes(65_537)), TOO_BIG),
    "too many in fragments": (frame(BINARY, bytes(40_000), final=False) + frame(0, bytes(40_000)), TOO_BIG),
    "fragments without end": (frame(BINARY, bytes(9_000), final=False) + frame(0, bytes(9_000), final=False) * 8, TOO_BIG),
    "text that is no UTF-8": (frame(TEXT, b'{"type":"\xff"}'), INVALID_DATA),
    "text with a surrogate": (frame(TEXT, b"\xed\xa0\x80"), INVALID_DATA),
    "overlong text": (frame(TEXT, b"\xc0\xaf"), INVALID_DATA),
    "text past Unicode": (frame(TEXT, b"\xf4\x90\x80\x80"), INVALID_DATA),
    "text that ends in mid-character": (frame(TEXT, b'"\xc3'), INVALID_DATA),
    "fragments that are no UTF-8": (frame(TEXT, b'"\xc3', final=False) + frame(0, b'(x"'), INVALID_DATA),
}
CLOSE_CODES_THAT_NOBODY_SENDS = (0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535)
VIOLATIONS |= {
    f"close code {code}": (frame(CLOSE, struct.pack(">H", code)), PROTOCOL_ERROR) for code in CLOSE_CODES_THAT_NOBODY_SENDS
}


@pytest.mark.parametrize("name", VIOLATIONS)
def test_what_breaks_the_standard_fails_the_connection(service, opened, name):
    data, code = VIOLATIONS[name]
    raw = opened()
    raw.send(data)
    assert raw.closing()[0] == code
    assert raw.at_its_end()
    assert "Traceback" not in service.log


def test_a_close_reason_that_is_no_utf8(opened):
    raw = opened()
    raw.send(frame(CLOSE, struct.pack(">H", 1000) + b"\xff\xfe"))
    assert raw.closing()[0] in (PROTOCOL_ERROR, INVALID_DATA)
    assert raw.at_its_end()


@pytest.mark.parametrize(
    ("payload", "code"), [(b"", 1005), *((struct.pack(">H", code), code) for code in (1000, 1001, 1003, 1011, 3000, 4999))]
)
def test_a_close_is_answered_in_kind(opened, payload, code):
    raw = opened()
    raw.send(frame(CLOSE, payload + (b"why" if payload else b"")))
    assert raw.closing()[0] == code
    assert raw.at_its_end()


def test_what_comes_behind_a_close_is_not_looked_at(opened):
    raw = opened()
    raw.send(frame(CLOSE, struct.pack(">H", 1000)) + frame(TEXT, FLUSH) + frame(3, b"") + b"\xff" * 999)
    assert raw.closing()[0] == 1000
    assert raw.at_its_end()


def test_who_sends_no_more_is_gone_and_its_place_is_free(opened):
    """A WebSocket has no half of a connection: the end of what comes is its end."""
    raw = opened()
    raw.send(frame(BINARY, bytes(3840)))
    raw.until(BINARY)
    raw.connection.shutdown(socket.SHUT_WR)
    try:
        while raw.connection.recv(65_536):
            pass
    except ConnectionResetError:
        pass
    lives(opened())


def test_a_frame_that_never_ends_holds_up_nobody(opened):
    raw = opened()
    raw.send(frame(BINARY, bytes(3840))[:1000])
    lives(opened())
    raw.send(frame(BINARY, bytes(3840))[1000:])
    assert len(raw.until(BINARY)) == 18
