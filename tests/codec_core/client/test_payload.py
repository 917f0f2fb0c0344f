from __future__ import annotations

import numpy as np
import pytest

from codec_core.client import StreamSettings
from codec_core.client.payload import payload_bytes
from codec_core.errors import CodecError, CodeRangeError, InputShapeError, InputTypeError, NonFiniteInputError


def as_bytes(data, **settings) -> bytes:
    return payload_bytes(data, StreamSettings(**settings), 2, 32)


def test_audio():
    assert as_bytes(np.array([-1.0, 0.5, 2.0], np.float32)) == np.array([-32768, 16384, 32767], "<i2").tobytes()
    assert as_bytes(np.array([1, -2], np.int16)) == b"\1\0\xfe\xff"
    assert as_bytes(np.array([16384], np.int16), sample_format="f32le") == np.array([0.5], "<f4").tobytes()
    assert as_bytes(np.zeros((3, 2), np.int16), channels=2) == bytes(12)
    assert as_bytes(np.zeros((3, 1), np.int16)) == bytes(6)
    assert as_bytes(memoryview(b"abc")) == b"abc"


def test_codes():
    codes = np.array([[1, 2, 3], [4, 5, 31]])
    assert as_bytes(codes, mode="decode") == np.array([1, 4, 2, 5, 3, 31], "<u2").tobytes()
    assert as_bytes(codes[:, 0], mode="decode") == np.array([1, 4], "<u2").tobytes()


@pytest.mark.parametrize(
    ("data", "settings", "error"),
    [
        (np.zeros((3, 2), np.int16), {}, InputShapeError),
        (np.zeros(3, np.int16), {"channels": 2}, InputShapeError),
        (np.zeros(3, np.int64), {}, InputTypeError),
        (np.array([0, np.nan], np.float32), {}, NonFiniteInputError),
        (np.array([np.inf], np.float64), {"sample_format": "f32le"}, NonFiniteInputError),
        (np.zeros(2, np.float32), {"mode": "decode"}, InputTypeError),
        (np.zeros((3, 2), int), {"mode": "decode"}, InputShapeError),
        (np.array([0, 32]), {"mode": "decode"}, CodeRangeError),
        (np.array([-1, 0]), {"mode": "decode"}, CodeRangeError),
    ],
)
def test_what_is_no_input_is_refused_before_it_is_sent(data, settings, error: type[CodecError]):
    with pytest.raises(error):
        as_bytes(data, **settings)
