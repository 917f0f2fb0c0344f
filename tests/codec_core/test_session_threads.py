"""Sessions and models met by several threads, and by a fork."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from codec_core import CodecModel
from codec_core.errors import CodeRangeError, SessionBusyError


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


@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer itself needs memory")
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
