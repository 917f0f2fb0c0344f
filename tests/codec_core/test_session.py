"""What a session takes, what it refuses, and by which name."""

from __future__ import annotations

import numpy as np
import pytest

from codec_core import CodecModel
from codec_core.errors import (
    CodeRangeError,
    InputShapeError,
    InputTypeError,
    NonFiniteInputError,
    NumericOverflowError,
    SessionClosedError,
    SettingError,
)

FRAME = np.zeros(1920, np.float32)


@pytest.mark.parametrize("shape", [(0,), (1,), (1919,), (1921,), (3840,), (1, 1920), (1920, 1), ()])
def test_encode_takes_exactly_one_frame(tiny_model: CodecModel, shape: tuple[int, ...]):
    with pytest.raises(InputShapeError, match=r"expected \[1920\]"):
        tiny_model.encoder().encode(np.zeros(shape, np.float32))


@pytest.mark.parametrize("dtype", ["int32", "int8", "uint16", "complex64", "float16", "U1", "bool"])
def test_pcm_of_another_type_is_refused_by_name(tiny_model: CodecModel, dtype: str):
    with pytest.raises(InputTypeError, match="int16 or float32 or float64"):
        tiny_model.encoder().encode(np.zeros(1920, dtype))
    with pytest.raises(InputTypeError):
        tiny_model.encoder().push(np.zeros(10, dtype))


def test_push_takes_one_dimension(tiny_model: CodecModel):
    with pytest.raises(InputShapeError):
        tiny_model.encoder().push(np.zeros((2, 1920), np.float32))


def test_int16_is_scaled(tiny_model: CodecModel, rng: np.random.Generator):
    whole = rng.integers(-32768, 32768, 1920).astype(np.int16)
    scaled = whole.astype(np.float32) / 32768
    assert np.array_equal(tiny_model.encoder().encode(whole), tiny_model.encoder().encode(scaled))


def test_strided_and_read_only_pcm_is_taken(tiny_model: CodecModel, pcm: np.ndarray):
    interleaved = np.stack([pcm[:1920], pcm[1920:3840]], axis=1)
    interleaved.setflags(write=False)
    assert np.array_equal(tiny_model.encoder().encode(interleaved[:, 0]), tiny_model.encoder().encode(pcm[:1920]))


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_a_sample_that_is_not_finite_is_named(tiny_model: CodecModel, value: float, word: str):
    frame = FRAME.copy()
    frame[77] = value
    with pytest.raises(NonFiniteInputError, match=f"sample 77 of frame 0: found {word}"):
        tiny_model.encoder().encode(frame)


@pytest.mark.parametrize("levels", [0, -1, 33, 10**9, 2**70])
def test_levels_outside_the_model_s_are_refused(tiny_model: CodecModel, levels: int):
    for make in (tiny_model.encoder, tiny_model.decoder):
        with pytest.raises(SettingError, match=r"levels.*1 \.\. 32"):
            make(levels)


@pytest.mark.parametrize("levels", [8.0, "8", True, [8]])
def test_levels_must_be_an_integer(tiny_model: CodecModel, levels: object):
    with pytest.raises(InputTypeError):
        tiny_model.encoder(levels)  # type: ignore[arg-type]


def test_levels_default_to_the_file_s(tiny_model: CodecModel):
    assert tiny_model.encoder().levels == tiny_model.decoder().levels == tiny_model.info.default_levels


@pytest.mark.parametrize("shape", [(7,), (9,), (0,), (8, 1), ()])
def test_decode_takes_exactly_one_frame(tiny_model: CodecModel, shape: tuple[int, ...]):
    with pytest.raises(InputShapeError, match=r"expected \[8\]"):
        tiny_model.decoder(8).decode(np.zeros(shape, np.int32))


@pytest.mark.parametrize("shape", [(8,), (7, 2), (2, 8), (1, 8, 2)])
def test_decoder_push_takes_levels_by_frames(tiny_model: CodecModel, shape: tuple[int, ...]):
    with pytest.raises(InputShapeError, match=r"\[8, frames\]"):
        tiny_model.decoder(8).push(np.zeros(shape, np.int32))


@pytest.mark.parametrize("dtype", ["float32", "bool", "U1", "complex64"])
def test_codes_must_be_integers(tiny_model: CodecModel, dtype: str):
    with pytest.raises(InputTypeError):
        tiny_model.decoder(8).decode(np.zeros(8, dtype))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_codes_of_any_integer_type_are_taken(tiny_model: CodecModel, dtype: str):
    codes = np.arange(8)
    assert np.array_equal(tiny_model.decoder(8).decode(codes.astype(dtype)), tiny_model.decoder(8).decode(codes))


@pytest.mark.parametrize(
    ("dtype", "value"), [("int64", -1), ("int64", 32), ("uint16", 65535), ("int64", 2**33), ("uint64", 2**64 - 1)]
)
def test_a_code_out_of_range_is_refused(tiny_model: CodecModel, dtype: str, value: int):
    codes = np.zeros(8, dtype)
    codes[3] = value
    with pytest.raises(CodeRangeError):
        tiny_model.decoder(8).decode(codes)


def test_a_code_out_of_range_is_named(tiny_model: CodecModel):
    with pytest.raises(CodeRangeError, match=r"code at level 3 of frame 0: found 32, expected 0 \.\. 31"):
        tiny_model.decoder(8).decode([0, 0, 0, 32, 0, 0, 0, 0])


def test_a_closed_session_refuses_every_call(tiny_model: CodecModel):
    encoder, decoder = tiny_model.encoder(8), tiny_model.decoder(8)
    for session in (encoder, decoder):
        session.close()
        session.close()
        for call in (session.reset, session.snapshot):
            with pytest.raises(SessionClosedError):
                call()
    for call in (lambda: encoder.encode(FRAME), lambda: encoder.push(FRAME), lambda: encoder.push(FRAME[:0]), encoder.flush):
        with pytest.raises(SessionClosedError):
            call()
    for call in (lambda: decoder.decode([0] * 8), lambda: decoder.push(np.zeros((8, 0), int))):
        with pytest.raises(SessionClosedError):
            call()


def test_a_refusal_names_the_frame_of_the_stream(tiny_model: CodecModel, pcm: np.ndarray):
    decoder = tiny_model.decoder(8)
    codes = np.zeros((8, 6), np.int32)
    decoder.push(codes)
    codes[2, 4] = 99
    with pytest.raises(CodeRangeError, match="level 2 of frame 10"):
        decoder.push(codes)
    encoder = tiny_model.encoder(8)
    loud = pcm[: 3 * 1920].copy()
    loud[2 * 1920 :] = 3e38
    with pytest.raises(NumericOverflowError, match="state of frame 2"):
        encoder.push(loud)


def test_a_session_closes_itself_at_the_end_of_a_block(tiny_model: CodecModel):
    with tiny_model.encoder(8) as session:
        session.encode(FRAME)
        assert repr(session) == "<EncoderSession of mimi-synth-tiny: 8 levels, 1 frames>"
    with pytest.raises(SessionClosedError):
        session.encode(FRAME)


def test_a_session_keeps_its_model_alive(tiny_model_path, pcm: np.ndarray):
    session = CodecModel.open(tiny_model_path).encoder(8)
    assert session.push(pcm[:1920]).shape == (8, 1)
