from __future__ import annotations

import numpy as np
import pytest

from codec_core.codes_text import looks_like_codes_text, parse_codes_text
from codec_core.errors import CodesFileError


def test_lines_among_others() -> None:
    data = b"loaded model\nframe=0 codes=1,2,3\nframe=1 codes=2047,0,65535  \r\n\ndone in 3 s\n"
    assert looks_like_codes_text(data)
    assert parse_codes_text(data).codes.tolist() == [[1, 2047], [2, 0], [3, 65535]]


def test_one_level() -> None:
    assert parse_codes_text(b"frame=0 codes=7\n").codes.tolist() == [[7]]


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b"", "codes"),
        (b"no such line\n", "codes"),
        (b"frame=0 codes=\n", "line 1"),
        (b"frame=0\n", "line 1"),
        (b"x\nframe=1 codes=1\n", "line 2"),
        (b"frame=0 codes=1\nframe=0 codes=1\n", "line 2"),
        (b"frame=0 codes=1\nframe=2 codes=1\n", "line 2"),
        (b"frame=0 codes=1,2\nframe=1 codes=1\n", "line 2"),
        (b"frame=0 codes=-1\n", "line 1"),
        (b"frame=0 codes=1,,2\n", "line 1"),
        (b"frame=0 codes=1 2\n", "line 1"),
        (b"frame=0 codes=70000\n", "level 0, frame 0"),
        (b"frame=0 codes=" + b"1," * 1024 + b"1\n", "line 1"),
        (b"frame=0 codes=\xff\n", "line 1"),
    ],
)
def test_malformed(data: bytes, place: str) -> None:
    with pytest.raises(CodesFileError, match=place):
        parse_codes_text(data)


def test_any_bytes_are_read_or_refused(rng: np.random.Generator) -> None:
    good = b"frame=0 codes=1,2,3\nframe=1 codes=4,5,6\n"
    for _ in range(2000):
        data = bytearray(good)
        for _ in range(rng.integers(1, 4)):
            data[rng.integers(len(data))] = rng.integers(256)
        try:
            document = parse_codes_text(bytes(data))
        except CodesFileError:
            continue
        assert document.codes.ndim == 2
