"""Opening and reading: only regular files, never a hang, and a file that changes underneath is an error."""

import os
import socket
import threading
import time
from pathlib import Path

import pytest

from codec_core import _ext
from codec_core.errors import CodecError, ModelAccessError, ModelFormatError

from .gguf_bytes import text, tiny_model
from .refusal import inspect, refused

REGULAR = "a readable regular file"


def refused_path(path: str) -> CodecError:
    with pytest.raises(ModelAccessError) as caught:
        _ext.inspect_model(path)
    return caught.value


def test_missing_file_and_dangling_link(tmp_path):
    link = tmp_path / "link.gguf"
    link.symlink_to(tmp_path / "gone.gguf")
    for path in (tmp_path / "gone.gguf", link):
        error = refused_path(str(path))
        assert (error.found, error.expected) == ("No such file or directory", REGULAR)
        assert error.subject == f"model file '{path}'"


def test_link_to_a_model_is_followed(tmp_path):
    inspect(tmp_path, tiny_model())
    link = tmp_path / "link.gguf"
    link.symlink_to(tmp_path / "model.gguf")
    assert _ext.inspect_model(str(link))["name"] == "tiny"


def test_what_is_no_regular_file(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for path, found in ((tmp_path, "a directory"), (tmp_path / "fifo", "a FIFO"), ("/dev/zero", "a device")):
        started = time.monotonic()
        error = refused_path(str(path))
        assert (error.found, error.expected) == (found, REGULAR)
        assert time.monotonic() - started < 1


def test_socket(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        assert refused_path("socket").expected == REGULAR


def test_path_with_nul():
    assert refused_path("model\0.gguf").found == "a path with a NUL byte"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_file_without_permission(tmp_path):
    inspect(tmp_path, tiny_model())
    (tmp_path / "model.gguf").chmod(0)
    assert refused_path(str(tmp_path / "model.gguf")).found == "Permission denied"


def touch(path: str, turn: int) -> None:
    os.utime(path, ns=(turn, turn))


def grow_and_shrink(path: str, turn: int) -> None:
    size_bytes = Path(path).stat().st_size
    os.truncate(path, size_bytes - 1 if turn % 2 else size_bytes + 1)


@pytest.mark.parametrize("disturb", [touch, grow_and_shrink])
def test_file_that_changes_while_it_is_read(tmp_path, disturb):
    inspect(tmp_path, tiny_model(codebook=(64, 512)))
    path = str(tmp_path / "model.gguf")
    done = threading.Event()

    def disturb_until_done() -> None:
        turn = 0
        while not done.is_set():
            turn += 1
            disturb(path, turn)

    thread = threading.Thread(target=disturb_until_done)
    thread.start()
    refusals = []
    deadline = time.monotonic() + 30
    try:
        while not refusals and time.monotonic() < deadline:
            try:
                _ext.inspect_model(path)
            except ModelAccessError as error:
                refusals.append(error)
            except ModelFormatError:
                continue  # opened while it was one byte short
    finally:
        done.set()
        thread.join()
    assert refusals
    assert refusals[0].subject == f"model file '{path}'"


def test_known_key_of_another_type(tmp_path):
    file = tiny_model()
    file.set_key(text("moshi.mimi.card", "8"))
    error = refused(tmp_path, file, ModelFormatError)
    assert (error.subject, error.found, error.expected) == (
        "key 'moshi.mimi.card'",
        "a string",
        "an integer that is not negative",
    )


def test_name_falls_back_to_the_file(tmp_path):
    file = tiny_model()
    file.keys = [key for key in file.keys if key.name != "general.name"]
    assert inspect(tmp_path, file)["name"] == "model"
