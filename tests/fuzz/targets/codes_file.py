"""Files of codes in every form: ``.npy``, ``.mimi``, ``.json``, ``.safetensors`` and lines of text.

Input: one byte that chooses the form, then the file.
"""

from __future__ import annotations

import contextlib
import io
import json
import struct
from collections.abc import Iterator
from typing import Final

import numpy as np

from codec_core.codes_file import FORMATS, CodesDocument, parse_codes, serialize_codes
from codec_core.codes_text import looks_like_codes_text, parse_codes_text
from codec_core.errors import CodesFileError
from tests.fuzz.materials import require_typed

COVERED: Final = (
    "codec_core/codes_document.py",
    "codec_core/codes_formats.py",
    "codec_core/codes_json.py",
    "codec_core/codes_text.py",
    "codec_core/safetensors_file.py",
)
DICTIONARY: Final = (
    b"\x93NUMPY\x01\x00",
    b"{'descr': '<i2', 'fortran_order': False, 'shape': (",
    b"True",
    b"'<u8'",
    b"'|b1'",
    b"'O'",
    b"MIMI",
    b'{"codes":[[',
    b'"levels":',
    b'"frames":',
    b'"samples":',
    b'"provenance":{',
    b'"__metadata__":{',
    b'"dtype":"I16"',
    b'"shape":[',
    b'"data_offsets":[0,',
    b"frame=0 codes=",
    b"1e999",
    b"NaN",
    b"-1",
    b"65536",
    b"null",
    b"\\ud800",
    b"]]}",
)
NPY, MIMI, JSON, SAFETENSORS, TEXT = range(5)
WHOLE: Final = CodesDocument(np.arange(12, dtype=np.int32).reshape(3, 4), 4 * 1920 - 7, {"model": "m"})


def one_input(data: bytes) -> None:
    form, content = data[0] % (TEXT + 1) if data else TEXT, data[1:]
    try:
        if form == TEXT:
            looks_like_codes_text(content)
            document = parse_codes_text(content)
        else:
            document = parse_codes(content, FORMATS[form])
    except CodesFileError as error:
        require_typed(error)
        return
    for name in FORMATS:
        _written_and_read(document, name)


def _written_and_read(document: CodesDocument, name: str) -> None:
    if name == "mimi" and document.codes.size and document.codes.max() > 32767:
        with contextlib.suppress(CodesFileError):
            serialize_codes(document, name)
            raise AssertionError("codes of .mimi that have no room in it")
        return
    data = serialize_codes(document, name)
    again = parse_codes(data, name)
    # A file of .mimi with no frame does not say how many levels it has no frame of, nor does JSON of no level.
    assert np.array_equal(again.codes, document.codes), name
    if name in ("json", "safetensors"):
        assert again.samples == document.samples
        assert dict(again.provenance) == dict(document.provenance)


def seeds() -> Iterator[bytes]:
    wide = CodesDocument(np.full((2, 3), 65535, np.int32))
    for form, name in enumerate(FORMATS):
        for document in (WHOLE, wide, CodesDocument(np.zeros((1, 0), np.int32), 0)):
            if not (document is wide and name == "mimi"):
                yield bytes([form]) + serialize_codes(document, name)
    yield bytes([TEXT]) + b"log\nframe=0 codes=1,2,3\nframe=1 codes=4,5,6\n"
    yield from _wrong_npy()
    yield from _wrong_json()
    yield from _wrong_safetensors()
    for levels in (0, -1, 1025, 2, 1 << 30):
        yield bytes([MIMI]) + b"MIMI" + struct.pack("<i", levels) + bytes(6)
    for text in ("frame=1 codes=1", "frame=0 codes=", "frame=0 codes=1\nframe=1 codes=1,2", "frame=0 codes=99999", "nothing"):
        yield bytes([TEXT]) + text.encode()


JSON_FIELDS: Final = (
    '"codes":[[1,2],[3]]',
    '"codes":[[70000]]',
    '"codes":[[-1]]',
    '"codes":[1]',
    '"codes":[[1.5]]',
    '"codes":[[1]],"levels":2',
    '"codes":[[1]],"samples":-1',
    '"codes":[[1]],"samples":99999',
    '"codes":[[1]],"provenance":{"a":1}',
    '"codes":[[1]],"codes":[[1]]',
    '"codes":{}',
    '"codes":[[' + "9" * 5000 + "]]",
    '"codes":[[NaN]]',
    '"codes":[]',
    '"a":' + "[" * 3000,
    '"codes":[[1]],"x":' + "8" * 5000,
)


ENTRIES: Final[tuple[dict[str, object], ...]] = (
    {"dtype": "I16", "shape": [1, 2], "data_offsets": [0, 4]},
    {"dtype": "F32", "shape": [1, 1], "data_offsets": [0, 4]},
    {"dtype": "I8", "shape": [2, 2], "data_offsets": [1, 5]},
    {"dtype": "U64", "shape": [1 << 40, 1 << 40], "data_offsets": [0, 4]},
    {"dtype": "Q4", "shape": [1], "data_offsets": [0, 4]},
    {"dtype": "I16", "shape": "x", "data_offsets": [0, 4]},
    {"dtype": "I16", "shape": [2], "data_offsets": [0]},
    {"dtype": "I16"},
)


def _wrong_npy() -> Iterator[bytes]:
    for dtype in ("<f4", "<i8", ">u4", "|b1"):
        stream = io.BytesIO()
        np.lib.format.write_array(stream, np.full((2, 3), 1 << 20).astype(dtype), allow_pickle=False)
        yield bytes([NPY]) + stream.getvalue()
    for shape in ("(1, 99999999999999)", "(-1, -2)", "(0, 10**99)", "(True, 2)", "(2,)", "(" * 500):
        text = "{'descr': '<i2', 'fortran_order': True, 'shape': " + shape + "}"
        yield bytes([NPY]) + b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + bytes(4)


def _wrong_json() -> Iterator[bytes]:
    yield from (bytes([JSON]) + b"{" + text.encode() + b"}" for text in JSON_FIELDS)
    yield bytes([JSON]) + json.dumps({"codes": [list(range(20_000))]}).encode()
    yield bytes([JSON]) + json.dumps({"codes": [[0]] * 1025}).encode()
    yield bytes([JSON]) + json.dumps({f"field {number}": 0 for number in range(70)}).encode()
    yield bytes([JSON]) + b"\xff\xfe"


def _wrong_safetensors() -> Iterator[bytes]:
    for entry in ENTRIES:
        for metadata in ({"samples": "12"}, {"samples": "-1"}, {"a": 1}, []):
            text = json.dumps({"__metadata__": metadata, "codes": entry}).encode()
            yield bytes([SAFETENSORS]) + struct.pack("<Q", len(text)) + text + bytes(4)
    for text in (b"[]", b'{"a":1,"a":1}', b'{"a":NaN}', b"{", b"[" * 3000):
        yield bytes([SAFETENSORS]) + struct.pack("<Q", len(text)) + text
    yield bytes([SAFETENSORS]) + struct.pack("<Q", 1 << 60) + b"{}"
    yield bytes([SAFETENSORS]) + b"short"
