from __future__ import annotations

import contextlib
import io
import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from safetensors.numpy import load, save

from codec_core.codes_file import (
    FORMATS,
    CodesDocument,
    CodesFormat,
    format_of,
    parse_codes,
    read_codes,
    serialize_codes,
    write_codes,
)
from codec_core.errors import CodesFileError

CODES = np.arange(24, dtype=np.int32).reshape(4, 6) * 80
FULL = CodesDocument(CODES, 6 * 1920 - 17, {"model": "m", "numerics": "kyutai", "note": 'quote " \u0436'})


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


@given(
    st.sampled_from(FORMATS),
    npst.arrays(np.int32, st.tuples(st.integers(1, 33), st.integers(0, 9)), elements=st.integers(0, 32767)),
    st.integers(0, 1919),
    st.dictionaries(st.text(), st.text()).filter(lambda fields: "samples" not in fields),
)
def test_round_trip(form: CodesFormat, codes: np.ndarray, padding: int, provenance: dict[str, str]) -> None:
    samples = max(0, codes.shape[1] * 1920 - padding)
    found = parse_codes(serialize_codes(CodesDocument(codes, samples, provenance), form), form)
    assert np.array_equal(found.codes, codes)
    assert found.codes.dtype == np.int32
    if form in ("json", "safetensors"):
        assert found.samples == samples
        assert found.provenance == provenance
    else:
        assert found.samples is None


@pytest.mark.parametrize("form", FORMATS)
def test_files(form: CodesFormat, tmp_path: Path) -> None:
    path = tmp_path / f"codes.{form.upper()}"
    write_codes(path, FULL)
    found = read_codes(path)
    assert np.array_equal(found.codes, CODES)
    write_codes(path, CodesDocument(CODES[:2], None))
    assert read_codes(path).levels == 2
    assert [path.name for path in tmp_path.iterdir()] == [path.name]


def test_layouts() -> None:
    assert np.array_equal(np.load(io.BytesIO(serialize_codes(FULL, "npy"))), CODES)
    assert np.load(io.BytesIO(serialize_codes(FULL, "npy"))).dtype == np.int16
    public = serialize_codes(FULL, "mimi")
    assert public[:8] == b"MIMI" + struct.pack("<i", 4)
    assert struct.unpack("<4h", public[8:16]) == tuple(CODES[:, 0])
    fields = json.loads(serialize_codes(FULL, "json"))
    assert fields == {
        "levels": 4,
        "frames": 6,
        "samples": 11503,
        "provenance": dict(FULL.provenance),
        "codes": CODES.tolist(),
    }
    assert np.array_equal(load(serialize_codes(FULL, "safetensors"))["codes"], CODES)


def test_codes_past_int16() -> None:
    wide = CodesDocument(np.array([[65535, 0, 32768]], np.int32))
    for form in ("npy", "json", "safetensors"):
        assert np.array_equal(parse_codes(serialize_codes(wide, form), form).codes, wide.codes)
    with pytest.raises(CodesFileError, match=r"found 65535, expected 0 \.\. 32767"):
        serialize_codes(wide, "mimi")


@pytest.mark.parametrize("dtype", ["u1", "i1", "<i2", ">i2", "<u2", "<i4", "<u4", "<i8", "<u8", ">i8"])
def test_npy_of_any_integer_type_and_order_is_read(dtype: str) -> None:
    codes = np.array([[1, 2, 3], [4, 5, 127]]).astype(dtype)
    assert np.array_equal(parse_codes(npy(codes), "npy").codes, codes)
    assert np.array_equal(parse_codes(npy(np.asfortranarray(codes)), "npy").codes, codes)


def npy_header(text: str, payload: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + payload


HOSTILE: list[tuple[CodesFormat, bytes, str]] = [
    ("npy", b"", "header"),
    ("npy", b"\x93NUMPY\x03\x00", "header"),
    ("npy", npy(CODES)[:40], "header"),
    ("npy", npy(CODES.astype(np.int16))[:-1], "payload: found 47 bytes, expected 48 bytes"),
    ("npy", npy(CODES) + b"x", "payload"),
    ("npy", npy(CODES.astype(np.float32)), "expected an integer array"),
    ("npy", npy(CODES[0]), "expected an integer array"),
    ("npy", npy(CODES[None]), "expected an integer array"),
    ("npy", npy(np.array([[None]], object)), "header"),
    ("npy", npy(np.array([[-1]])), "found -1"),
    ("npy", npy(np.array([[2**40]])), "found 1099511627776"),
    ("npy", npy(np.zeros((0, 3), np.int16)), "shape [0, 3]"),
    ("npy", npy_header("{'descr': '<i2', 'fortran_order': False, 'shape': (1, 99999999999999)}"), "payload"),
    ("npy", npy_header("{'descr': '<i2', 'fortran_order': False, 'shape': (0, 10**99)}"), "header"),
    ("npy", npy_header("{'descr': '<i2', 'fortran_order': False, 'shape': (-1, -2)}", b"\0" * 4), "header"),
    (
        "npy",
        npy_header("{'descr': '<i2', 'fortran_order': False, 'shape': (True, 1)}", b"\0" * 2),
        "header: found int16 [True, 1]",
    ),
    ("npy", npy_header("__import__('os').abort()"), "header"),
    ("npy", npy_header("(" * 5000), "header"),
    ("npy", npy_header("'''"), "header"),
    ("mimi", b"", "magic"),
    ("mimi", b"MIMI\1\0\0", "magic"),
    ("mimi", b"RIFF\1\0\0\0", "magic: found b'RIFF'"),
    ("mimi", b"MIMI" + struct.pack("<i", 0), "levels: found 0"),
    ("mimi", b"MIMI" + struct.pack("<i", -8), "levels: found -8"),
    ("mimi", b"MIMI" + struct.pack("<i", 2**31 - 1), "levels"),
    ("mimi", b"MIMI" + struct.pack("<i3h", 2, 1, 2, 3), "payload: found 6 bytes, expected whole frames of 4 bytes"),
    ("mimi", b"MIMI" + struct.pack("<i4h", 2, 1, 2, 3, -4), "level 1, frame 1: found -4"),
    ("json", b"", "no JSON object"),
    ("json", b"\xff", "no JSON object"),
    ("json", b"[" * 100_000, "no JSON object"),
    ("json", b"[]", "no JSON object"),
    ("json", b'{"codes": 3}', "codes: found no list"),
    ("json", b'{"codes": []}', "shape [0, 0]"),
    ("json", b'{"codes": [[1,2],[3]]}', "codes[1]: found 1 frames, expected a list of 2 codes"),
    ("json", b'{"codes": [[1,2],3]}', "codes[1]: found int"),
    ("json", b'{"codes": [[1,2.0]]}', "codes[0][1]: found 2.0"),
    ("json", b'{"codes": [[1,true]]}', "codes[0][1]: found True"),
    ("json", b'{"codes": [[1,-1]]}', "codes[0][1]: found -1"),
    ("json", b'{"codes": [[1,1e999]]}', "codes[0][1]: found inf"),
    ("json", b'{"codes": [[1,' + b"9" * 4000 + b"]]}", "codes[0][1]: found 999"),
    ("json", b'{"codes": [[1,' + b"9" * 9000 + b"]]}", "codes[0][1]: found 999"),
    ("json", b'{"codes": [[1]], "levels": 1.0}', "levels: found 1.0, expected 1"),
    ("json", b'{"codes": [[1]], "frames": true}', "frames: found True, expected 1"),
    ("json", b'{"codes": [[1]], "samples": ' + b"9" * 9000 + b"}", "samples: found 999"),
    ("json", b'{"codes": [[1]], "levels": 2}', "levels: found 2, expected 1"),
    ("json", b'{"codes": [[1]], "frames": "1"}', "frames: found '1', expected 1"),
    ("json", b'{"codes": [[1]], "samples": 1921}', "samples: found 1921, expected 1 .. 1920"),
    ("json", b'{"codes": [[1]], "samples": 0}', "samples: found 0, expected 1 .. 1920"),
    ("json", b'{"codes": [[1]], "samples": 5.0}', "samples: found 5.0"),
    ("json", b'{"codes": [[1]], "provenance": {"a": 1}}', "provenance"),
    ("safetensors", b"", "0 bytes"),
    ("safetensors", save({"other": CODES}), "codes: found no such tensor"),
    ("safetensors", save({"codes": CODES.astype(np.float32)}), "codes: found F32"),
    ("safetensors", save({"codes": CODES[0]}), "codes: found I32 [6]"),
    ("safetensors", save({"codes": -CODES}), "found -1840"),
    ("safetensors", save({"codes": CODES}, {"samples": "-5"}), "samples: found '-5'"),
    ("safetensors", save({"codes": CODES}, {"samples": "\u0665"}), "samples"),
    ("safetensors", save({"codes": CODES}, {"samples": "5"}), "samples: found 5, expected 9601 .. 11520"),
    ("safetensors", save({"codes": CODES})[:-1], "file size"),
]


@pytest.mark.parametrize(("form", "data", "message"), HOSTILE)
def test_hostile_bytes_are_refused(form: CodesFormat, data: bytes, message: str) -> None:
    with pytest.raises(CodesFileError) as caught:
        parse_codes(data, form, subject="upload")
    assert str(caught.value).startswith("upload")
    assert message in str(caught.value)


@given(st.sampled_from(FORMATS), st.data())
def test_damaged_bytes_have_the_typed_error_or_none(form: CodesFormat, data: st.DataObject) -> None:
    good = bytearray(serialize_codes(FULL, form))
    for _ in range(data.draw(st.integers(1, 4))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(CodesFileError):
        parse_codes(bytes(good[: data.draw(st.integers(len(good) // 2, len(good)))]), form)


@given(st.sampled_from(FORMATS), st.binary(max_size=200))
def test_noise_has_the_typed_error(form: CodesFormat, data: bytes) -> None:
    with pytest.raises(CodesFileError):
        parse_codes(data, form)


@pytest.mark.parametrize("document", [CodesDocument(CODES[0]), CodesDocument(-CODES), CodesDocument(CODES, 10**6)])
def test_impossible_documents_are_not_written(document: CodesDocument, tmp_path: Path) -> None:
    with pytest.raises(CodesFileError):
        write_codes(tmp_path / "x.json", document)
    assert [path.name for path in tmp_path.iterdir()] == []


@pytest.mark.parametrize("name", ["codes", "codes.txt", "codes.npz", ".npy"])
def test_unknown_suffixes(name: str) -> None:
    with pytest.raises(CodesFileError, match=r"expected \.npy or \.mimi or \.json or \.safetensors"):
        format_of(name)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npy")
    (tmp_path / "dir.npy").mkdir()
    for name in ("pipe.npy", "dir.npy", "none.npy"):
        with pytest.raises(CodesFileError):
            read_codes(tmp_path / name)
    with pytest.raises(CodesFileError, match="No such file"):
        write_codes(tmp_path / "no" / "x.npy", FULL)


def test_what_is_kept_is_what_was_given() -> None:
    fields: dict[str, Any] = json.loads(serialize_codes(CodesDocument(CODES), "json"))
    assert fields.keys() == {"levels", "frames", "codes"}
