from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest

from codec_core.convert import source_file
from codec_core.convert.source_file import SourceFile
from codec_core.errors import ModelAccessError


def test_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_file, "PIECE_BYTES", 10)
    data = bytes(range(256)) * 3
    path = tmp_path / "x.bin"
    path.write_bytes(data)
    sizes: list[int] = []
    with SourceFile(path) as file:
        assert file.size_bytes == 768
        assert file.read(5, 700) == data[5:705]
        assert file.read(768, 0) == b""
        pieces = list(file.pieces(3, 100, 4))
        assert b"".join(pieces) == data[3:103]
        assert {len(piece) for piece in pieces} == {8, 4}
        assert [len(piece) for piece in file.pieces(0, 50, 25)] == [25, 25]
        assert file.sha256(sizes.append) == hashlib.sha256(data).hexdigest()
        file.require_unchanged()
    assert sum(sizes) == 768


def test_what_is_no_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "link", tmp_path / "none", Path("/dev/zero"), "nul\0"):
        with pytest.raises(ModelAccessError):
            SourceFile(path)


def test_a_file_that_shrinks_or_changes(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(bytes(100))
    with SourceFile(path) as file:
        os.truncate(path, 50)
        with pytest.raises(ModelAccessError, match="found the end of the file at 50, expected 10 more bytes"):
            file.read(40, 20)
        with pytest.raises(ModelAccessError, match="changed while it was read"):
            file.require_unchanged()


def test_a_change_that_keeps_size_and_time(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(bytes(100))
    before = path.stat()
    with SourceFile(path) as file:
        time.sleep(0.02)  # clocks of file systems tick in milliseconds
        path.write_bytes(bytes(99) + b"x")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        with pytest.raises(ModelAccessError, match="changed while it was read"):
            file.require_unchanged()


@pytest.mark.parametrize("is_there", [True, False])
def test_a_path_that_leads_elsewhere_by_now(is_there: bool, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_bytes(bytes(100))
    (tmp_path / "link").symlink_to("a")
    with SourceFile(tmp_path / "link") as file:
        (tmp_path / "link").unlink()
        if is_there:
            (tmp_path / "link").symlink_to("b")
        with pytest.raises(ModelAccessError, match="changed while it was read"):
            file.require_unchanged()
