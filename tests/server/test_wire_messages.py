from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codec_core.errors import CodeRangeError
from server.errors import CapacityError, PayloadError
from server.wire_messages import (
    HEADER,
    KIND_CODES,
    KIND_PCM,
    SERVER_MESSAGES,
    FrameHeader,
    error_text,
    pack_codes,
    pack_frame,
    server_text,
    unpack_frame,
)


def test_the_header_byte_by_byte():
    message = pack_frame(KIND_PCM, 1, 0x01020304, 0x1112131415161718, b"xy")
    assert message == bytes.fromhex("01 02 0100 04030201 1817161514131211") + b"xy"
    assert HEADER.size == 16
    assert pack_codes(1, 1920, [1, 2047]) == bytes.fromhex("01 01 0200 01000000 8007000000000000 0100 ff07")


@given(st.integers(0, 2**16 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1), st.binary(max_size=100))
def test_packing_is_undone_by_unpacking(width, sequence, position, payload):
    header, unpacked = unpack_frame(pack_frame(KIND_CODES, width, sequence, position, payload))
    assert header == FrameHeader(1, KIND_CODES, width, sequence, position)
    assert unpacked == payload


@pytest.mark.parametrize("message", [b"", bytes(15), b"\x02" + bytes(15)])
def test_what_is_no_frame_is_refused(message):
    with pytest.raises(PayloadError):
        unpack_frame(message)


def test_text_messages_have_their_listed_fields_only():
    assert json.loads(server_text("reset_done", epoch=3)) == {"type": "reset_done", "epoch": 3}
    with pytest.raises(ValueError, match="colour"):
        server_text("reset_done", colour=3)


def test_an_error_message_carries_every_field():
    fields = json.loads(error_text(CapacityError("streams", "2 of 2 places taken", "a free place", retry_after_ms=5)))
    assert set(fields) == {"type", *SERVER_MESSAGES["error"]}
    assert (fields["code"], fields["retry_after_ms"]) == ("capacity", 5)
    assert "retry_after_ms" not in json.loads(error_text(CodeRangeError("codes", "9", "0 .. 8")))
