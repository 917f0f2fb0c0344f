"""What a session takes, what it refuses, and by which name."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading

import numpy as np
import pytest

from codec_core import CodecModel
from codec_core.errors import (
    CodeRangeError,
    InputShapeError,
    InputTypeError,
    NonFiniteInputError,
    NumericOverflowError,
    SessionBusyError,
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


def test_a_second_thread_is_refused_and_the_first_goes_on(tiny_model: CodecModel, pcm: np.ndarray):
    session, undisturbed = tiny_model.encoder(8), tiny_model.encoder(8)
    inside, leave = threading.Event(), threading.Event()
    codes: list[np.ndarray] = []

    def hold(name: str, _values: np.ndarray) -> None:
        if name == "encoder.transformer":
            inside.set()
            assert leave.wait(20)

    first = threading.Thread(target=lambda: codes.append(session.encode(pcm[:1920], hold)))
    first.start()
    assert inside.wait(20)
    try:
        calls = (
            lambda: session.encode(pcm[:1920]),
            session.reset,
            session.snapshot,
            session.close,
            lambda: tiny_model.encode_batch([tiny_model.encoder(8), session], pcm[:3840].reshape(2, 1920)),
        )
        for call in calls:
            with pytest.raises(SessionBusyError):
                call()
    finally:
        leave.set()
        first.join()
    assert np.array_equal(codes[0], undisturbed.encode(pcm[:1920]))
    assert np.array_equal(session.encode(pcm[1920:3840]), undisturbed.encode(pcm[1920:3840]))


def test_sessions_in_many_threads_share_a_model(default_model: CodecModel, pcm: np.ndarray):
    expected = default_model.encoder(8).push(pcm)
    found: dict[int, np.ndarray] = {}

    def encode(index: int) -> None:
        found[index] = default_model.encoder(8).push(pcm)

    threads = [threading.Thread(target=encode, args=(index,)) for index in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert all(np.array_equal(codes, expected) for codes in found.values())


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
    with pytest.raises(NumericOverflowError, match="latent of frame 2"):
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


def test_a_push_of_many_frames_is_one_call(tiny_model: CodecModel, pcm: np.ndarray, monkeypatch: pytest.MonkeyPatch):
    """A second thread is refused between the frames too, and the codes are those of an undisturbed stream."""
    session = tiny_model.encoder(8)
    between, go_on = threading.Event(), threading.Event()
    found: list[np.ndarray] = []
    encode_frame = session._encode_frame

    def pause_after_the_first(frame: np.ndarray) -> np.ndarray:
        codes = encode_frame(frame)
        if session.position_frames == 1:
            between.set()
            assert go_on.wait(20)
        return codes

    monkeypatch.setattr(session, "_encode_frame", pause_after_the_first)
    pushing = threading.Thread(target=lambda: found.append(session.push(pcm)))
    pushing.start()
    assert between.wait(20)
    try:
        for call in (lambda: session.encode(pcm[:1920]), session.flush, session.snapshot, session.reset, session.close):
            with pytest.raises(SessionBusyError):
                call()
        with pytest.raises(SessionBusyError):
            tiny_model.encode_batch([session], pcm[:1920].reshape(1, 1920))
    finally:
        go_on.set()
        pushing.join()
    assert np.array_equal(found[0], tiny_model.encoder(8).push(pcm))


def test_codes_that_change_while_they_are_decoded_do_no_harm(tiny_model: CodecModel):
    """What is checked is what is used: the engine has its own copy before other threads may run."""
    codes = np.zeros((4, 8), np.int32)
    decoders = [tiny_model.decoder(8) for _ in range(4)]
    stop = threading.Event()

    def flip() -> None:
        while not stop.is_set():
            codes[:] = 2**30
            codes[:] = 0

    flipping = threading.Thread(target=flip)
    flipping.start()
    try:
        for _ in range(300):
            with contextlib.suppress(CodeRangeError):
                assert np.isfinite(tiny_model.decode_batch(decoders, codes)).all()
    finally:
        stop.set()
        flipping.join()


def run_program(program: str) -> int:
    return subprocess.run([sys.executable, "-W", "ignore", "-P", "-c", program], timeout=60, check=False).returncode


def test_a_fork_goes_on_alone(tiny_model_path):
    """The pool's workers stay behind in the parent; the child computes the same without them."""
    assert not run_program(f"""
import os, sys
import numpy as np
from codec_core import CodecModel
frame = np.linspace(-0.5, 0.5, 1920, dtype=np.float32)
undisturbed = CodecModel.open({str(tiny_model_path)!r}).encoder(8)
undisturbed.encode(frame)
session = CodecModel.open({str(tiny_model_path)!r}, threads=3).encoder(8)
session.encode(frame)
child = os.fork()
same = np.array_equal(session.encode(frame), undisturbed.encode(frame))
if child == 0:
    os._exit(0 if same else 1)
sys.exit(0 if same and os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 else 1)
""")


def test_threads_that_the_system_does_not_grant_are_refused(tiny_model_path):
    assert not run_program(f"""
import resource
from codec_core import CodecModel
from codec_core.errors import UnavailableError
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (300 << 20), used + (300 << 20)))
try:
    CodecModel.open({str(tiny_model_path)!r}, threads=250)
except UnavailableError as error:
    assert error.subject == "threads", error
else:
    raise SystemExit("opened")
assert CodecModel.open({str(tiny_model_path)!r}, threads=2).info.threads == 2
""")
