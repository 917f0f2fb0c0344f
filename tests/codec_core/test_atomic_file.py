from __future__ import annotations

import os
from pathlib import Path

import pytest

from codec_core.atomic_file import atomic_output
from codec_core.errors import AudioFileError, OutputExistsError


def test_the_file_appears_at_the_end_and_alone(tmp_path: Path) -> None:
    final = tmp_path / "out.bin"
    with atomic_output(final, replace=False, error=AudioFileError) as temporary:
        temporary.write_bytes(b"whole")
        assert not final.exists()
        assert temporary.parent == tmp_path
    assert final.read_bytes() == b"whole"
    assert [path.name for path in tmp_path.iterdir()] == ["out.bin"]


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path, failure: type[BaseException]) -> None:
    final = tmp_path / "out.bin"
    final.write_bytes(b"old")

    def write_half() -> None:
        with atomic_output(final, replace=True, error=AudioFileError) as temporary:
            temporary.write_bytes(b"half")
            raise failure

    with pytest.raises(failure):
        write_half()
    assert final.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["out.bin"]


def test_an_existing_file_is_refused_before_any_work(tmp_path: Path) -> None:
    final = tmp_path / "out.bin"
    final.symlink_to(tmp_path / "nowhere")
    with pytest.raises(OutputExistsError), atomic_output(final, replace=False, error=AudioFileError):
        pytest.fail("entered")
    assert [path.name for path in tmp_path.iterdir()] == ["out.bin"]


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    final = tmp_path / "out.bin"

    def race() -> None:
        with atomic_output(final, replace=False, error=AudioFileError) as temporary:
            temporary.write_bytes(b"mine")
            final.write_bytes(b"theirs")

    with pytest.raises(OutputExistsError):
        race()
    assert final.read_bytes() == b"theirs"
    assert [path.name for path in tmp_path.iterdir()] == ["out.bin"]


def test_replacing_replaces(tmp_path: Path) -> None:
    final = tmp_path / "out.bin"
    final.write_bytes(b"old")
    with atomic_output(final, replace=True, error=AudioFileError) as temporary:
        temporary.write_bytes(b"new")
    assert final.read_bytes() == b"new"


def test_a_missing_directory_has_the_callers_error(tmp_path: Path) -> None:
    missing = atomic_output(tmp_path / "no" / "out.bin", replace=False, error=AudioFileError)
    with pytest.raises(AudioFileError, match="No such file or directory"), missing:
        pytest.fail("entered")


def test_a_full_disk_has_the_callers_error(tmp_path: Path) -> None:
    output = atomic_output(tmp_path / "out.bin", replace=False, error=AudioFileError)
    with Path("/dev/full").open("wb", buffering=0) as full, pytest.raises(AudioFileError, match="No space left"), output:
        full.write(b"x")
    assert [path.name for path in tmp_path.iterdir()] == []


def test_the_mode_follows_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        with atomic_output(tmp_path / "out.bin", replace=False, error=AudioFileError):
            pass
    finally:
        os.umask(old)
    assert (tmp_path / "out.bin").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("name", [".", "..", "", "/", "folder", "pipe", "link", "nul\0", "x" * 300])
def test_what_is_no_file_is_refused_before_any_work(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    os.mkfifo("pipe")
    (tmp_path / "link").symlink_to("/dev/null")
    with pytest.raises(AudioFileError), atomic_output(name, replace=True, error=AudioFileError):
        pytest.fail("entered")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "link", "pipe"]


def test_a_name_as_long_as_may_be(tmp_path: Path) -> None:
    final = tmp_path / ("\u00e9" * 125 + ".gguf")
    with atomic_output(final, replace=False, error=AudioFileError) as temporary:
        temporary.write_bytes(b"whole")
    assert final.read_bytes() == b"whole"
