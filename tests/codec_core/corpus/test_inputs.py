"""Inputs of every kind become one ordered list, each source once."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from codec_core.corpus.inputs import Source, fingerprint, list_sources
from codec_core.corpus.manifest import manifest_sources
from codec_core.corpus.tar_members import tar_sources
from codec_core.errors import SettingError


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("b.wav", "a.FLAC", "notes.txt", ".hidden.wav", "deep/c.ogg", "deep/er/d.mp3", "out/shard.tar"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    (tmp_path / "list.csv").write_text("path,text\nb.wav,hello\ndeep/c.ogg,there\n")
    with tarfile.open(tmp_path / "one.tar", "w") as tar:
        tar.add(tmp_path / "b.wav", "1.wav")
        tar.add(tmp_path / "notes.txt", "1.txt")
    return tmp_path


def listed(*inputs: str | Path, leave_out: Path | None = None) -> list[Source]:
    return list_sources([str(one) for one in inputs], manifest_sources, tar_sources, leave_out)


def names(sources: list[Source], root: Path) -> list[str]:
    return [str(Path(source.path).relative_to(root)) + (f":{source.member}" if source.member else "") for source in sources]


def test_a_folder_is_searched_in_depth_for_audio_and_tars(tree: Path):
    found = names(listed(tree, leave_out=tree / "out"), tree)
    assert found == ["a.FLAC", "b.wav", "one.tar:1.wav", "deep/c.ogg", "deep/er/d.mp3"]


def test_files_come_as_given_whatever_their_suffix(tree: Path):
    assert names(listed(tree / "notes.txt", tree / "a.FLAC"), tree) == ["notes.txt", "a.FLAC"]


def test_globs_are_sorted(tree: Path):
    assert names(listed(tree / "*.[wF]*"), tree) == ["a.FLAC", "b.wav"]
    assert names(listed(tree / "**" / "*.mp3"), tree) == ["deep/er/d.mp3"]


def test_a_file_whose_name_looks_like_a_glob_is_that_file(tree: Path):
    (tree / "take[1].wav").write_bytes(b"x")
    assert names(listed(tree / "take[1].wav"), tree) == ["take[1].wav"]


def test_what_is_named_twice_is_there_once(tree: Path):
    assert names(listed(tree / "deep", tree / "deep" / "c.ogg", tree / "d*"), tree) == ["deep/c.ogg", "deep/er/d.mp3"]


def test_manifests_and_tars_are_expanded(tree: Path):
    sources = listed(tree / "list.csv", tree / "one.tar")
    assert names(sources, tree) == ["b.wav", "deep/c.ogg", "one.tar:1.wav"]
    assert [source.fields for source in sources] == ['{"text":"hello"}', '{"text":"there"}', None]


def test_a_missing_file_is_kept_to_be_reported(tree: Path):
    assert names(listed(tree / "none.wav"), tree) == ["none.wav"]


@pytest.mark.parametrize("name", ["*.opus", "empty", "packed.tar.gz"])
def test_what_names_nothing_is_refused(tree: Path, name: str):
    (tree / "empty").mkdir()
    (tree / "packed.tar.gz").write_bytes(b"x")
    with pytest.raises(SettingError, match="input"):
        listed(tree / "b.wav", tree / name)


def test_the_fingerprint_sees_names_order_channels_and_fields():
    lists = (
        [Source("a"), Source("b")],
        [Source("b"), Source("a")],
        [Source("a", "b")],
        [Source("a", channel=0), Source("b")],
        [Source("a", fields="{}"), Source("b")],
    )
    assert len({fingerprint(one) for one in lists}) == len(lists)
    assert fingerprint([Source("a", "m", 5, 6)]) == fingerprint([Source("a", "m", 7, 8)])
