"""Members of tars, read in place."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

from codec_core.corpus.tar_members import FileWindow, tar_sources
from codec_core.errors import AudioFileError


@pytest.fixture
def tar_path(tmp_path: Path) -> Path:
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as tar:
        for name, data in (("a.wav", b"A" * 700), ("a.json", b"{}"), ("deep/b.FLAC", b"B" * 3), ("c.wav", b"")):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        link = tarfile.TarInfo("d.wav")
        link.type, link.linkname = tarfile.SYMTYPE, "a.wav"
        tar.addfile(link)
    return path


def test_audio_members_are_listed_with_their_place(tar_path: Path):
    sources = list(tar_sources(tar_path))
    assert [source.member for source in sources] == ["a.wav", "deep/b.FLAC", "c.wav"]
    data = tar_path.read_bytes()
    contents = [data[source.offset_bytes : source.offset_bytes + source.size_bytes] for source in sources]
    assert contents == [b"A" * 700, b"B" * 3, b""]


@pytest.mark.parametrize("data", [b"", b"no tar at all" * 100])
def test_no_tar(tmp_path: Path, data: bytes):
    (tmp_path / "x.tar").write_bytes(data)
    with pytest.raises(AudioFileError, match=r"x\.tar"):
        list(tar_sources(tmp_path / "x.tar"))


def test_a_window_reads_as_the_part_would(tmp_path: Path, rng: np.random.Generator):
    data = rng.bytes(5000)
    (tmp_path / "x").write_bytes(data)
    part = io.BytesIO(data[1000:3000])
    with io.BufferedReader(FileWindow(tmp_path / "x", 1000, 2000), 64) as window:
        for _ in range(300):
            whence = int(rng.integers(0, 3))
            offset = int(rng.integers(0, 2200)) if whence == 0 else int(rng.integers(-300, 300))
            if whence and offset < 0 and (part.tell() if whence == 1 else 2000) + offset < 0:
                continue
            assert window.seek(offset, whence) == part.seek(offset, whence)
            size = int(rng.integers(0, 500))
            assert window.read(size) == part.read(size)


def test_a_window_past_the_end_is_cut(tmp_path: Path):
    (tmp_path / "x").write_bytes(b"0123456789")
    assert FileWindow(tmp_path / "x", 8, 50).readall() == b"89"
    assert FileWindow(tmp_path / "x", 80, 50).readall() == b""
