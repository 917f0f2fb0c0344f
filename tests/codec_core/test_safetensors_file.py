from __future__ import annotations

import contextlib
import json
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load, save

from codec_core.errors import CheckpointError
from codec_core.safetensors_file import SafetensorsHeader, build_header, read_header

GOOD = {
    "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
    "b": {"dtype": "I16", "shape": [], "data_offsets": [24, 26]},
}


def parse(data: bytes) -> SafetensorsHeader:
    def read(at: int, size: int) -> bytes:
        assert at + size <= len(data), "read past the end"
        return data[at : at + size]

    return read_header(read, len(data), error=CheckpointError, subject="file")


def pack(fields: Any, payload: int = 26, length: int | None = None) -> bytes:
    text = fields if isinstance(fields, bytes) else json.dumps(fields).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + bytes(payload)


def changed(name: str, **values: Any) -> dict[str, Any]:
    return {**GOOD, name: {**GOOD[name], **values}}


def test_reads_what_the_public_package_writes() -> None:
    tensors = {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "y": np.array([1, -1], np.int16)}
    data = save(tensors, metadata={"made by": "us"})
    header = parse(data)
    assert header.metadata == {"made by": "us"}
    for name, array in tensors.items():
        stored = header.tensors[name]
        assert stored.shape == array.shape
        assert data[stored.offset_bytes : stored.offset_bytes + stored.size_bytes] == array.tobytes()


def test_the_public_package_reads_what_we_write() -> None:
    array = np.arange(8, dtype=np.int16).reshape(2, 4)
    data = build_header([("codes", "I16", (2, 4)), ("one", "U8", ())], {"k": "v"}) + array.tobytes() + b"\7"
    found = load(data)
    assert np.array_equal(found["codes"], array)
    assert found["one"] == 7
    assert parse(data).metadata == {"k": "v"}
    assert (len(build_header([], {})) - 8) % 8 == 0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "0 bytes"),
        (b"\0" * 7, "7 bytes"),
        (pack(GOOD, length=10**15), "header length: found 1000000000000000"),
        (pack(GOOD, length=2**64 - 1), "header length"),
        (b"<!DOCTYPE html><html>", "header length"),
        (pack(b"{"), "header: found bytes that are not JSON"),
        (pack(b"[" * 100_000), "header: found bytes that are not JSON"),
        (pack(b"\xff\xfe{}"), "header: found bytes that are not JSON"),
        (pack(b'{"a": NaN}'), "header: found bytes that are not JSON"),
        (pack(b'{"a":1,"a":2}'), "the key 'a' twice"),
        (pack([]), "header: found list"),
        (pack({"__metadata__": {"a": 1}}), "__metadata__: 'a': found int, expected a string"),
        (pack({"__metadata__": "x"}), "__metadata__: found str"),
        (pack({**GOOD, "a": 5}), "'a': found an unknown form of entry"),
        (pack(changed("a", more=1)), "'a': found an unknown form of entry"),
        (pack(changed("a", dtype="F128")), "'a': dtype: found 'F128'"),
        (pack(changed("a", dtype=["F32"])), "'a': dtype"),
        (pack(changed("a", shape=[2, -3])), "'a': shape"),
        (pack(changed("a", shape=[True, 3])), "'a': shape"),
        (pack(changed("a", shape=[2, 2**60])), "'a': shape"),
        (pack(changed("a", shape=[1] * 9)), "'a': shape"),
        (pack(changed("a", shape=6)), "'a': shape"),
        (pack(changed("a", shape=[2, 4])), "'a': data_offsets: found 24 bytes, expected 32 bytes"),
        (pack(changed("a", data_offsets=[24, 0])), "'a': data_offsets"),
        (pack(changed("a", data_offsets=[0])), "'a': data_offsets"),
        (pack(changed("a", data_offsets=[0, 24.0])), "'a': data_offsets"),
        (pack(changed("b", data_offsets=[22, 24])), "'b': data_offsets: found a start at 22, expected 24"),
        (pack(changed("b", data_offsets=[28, 30])), "'b': data_offsets: found a start at 28, expected 24"),
        (pack(GOOD, payload=25), "file size"),
        (pack(GOOD, payload=27), "file size"),
    ],
)
def test_a_header_that_lies_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        parse(data)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "fields",
    [
        "{NAME: 5}",
        '{"__metadata__": {NAME: 5}}',
        "{NAME: 1, NAME: 2}",
        '{"__metadata__": {NAME: "1", NAME: "2"}}',
        '{NAME: {"dtype": "U8", "shape": [1], "data_offsets": [7, 8]}}',
    ],
)
def test_a_name_is_shown_short_and_in_ascii(fields: str) -> None:
    name = "\x1b[31m\u202e\n" + "x" * 100_000
    with pytest.raises(CheckpointError) as caught:
        parse(pack(fields.replace("NAME", json.dumps(name)).encode()))
    assert rf"'\x1b[31m\u202e\n{'x' * 113}'" in str(caught.value)
    assert str(caught.value).isascii()
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


@given(st.data())
def test_damaged_bytes_have_the_typed_error_or_none(data: st.DataObject) -> None:
    good = bytearray(pack(GOOD))
    for _ in range(data.draw(st.integers(1, 4))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(CheckpointError):
        parse(bytes(good[: data.draw(st.integers(0, len(good)))]))
