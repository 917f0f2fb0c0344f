from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codec_core import CodecModel
from codec_core.convert import ConversionReport, convert_model
from codec_core.errors import CheckpointError, ModelAccessError, ModelContractError, ModelFormatError
from codec_core.model_cache import Progress, cache_directory, pulled_path, resolve, watched


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MIMI_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def entries(cache: Path) -> list[Path]:
    """Everything in the cache that is no folder."""
    return sorted(path for path in cache.rglob("*") if not path.is_dir())


def test_a_checkpoint_is_converted_once(tiny_checkpoint: Path, tiny_gguf: Path, cache: Path) -> None:
    first = resolve(tiny_checkpoint)
    assert entries(cache) == [first]
    assert first.read_bytes() == tiny_gguf.read_bytes()
    written = first.stat()
    assert resolve(tiny_checkpoint) == first
    assert (first.stat().st_ino, first.stat().st_mtime_ns) == (written.st_ino, written.st_mtime_ns)
    assert first.name.startswith(f"{tiny_checkpoint.parent.name}-tiny-")


def test_a_checkpoint_can_be_opened_like_a_model(tiny_checkpoint: Path, tiny_gguf: Path, pcm: np.ndarray) -> None:
    found, expected = (CodecModel.open(path) for path in (tiny_checkpoint, tiny_gguf))
    assert found.info.sha256 == expected.info.sha256
    assert np.array_equal(found.encoder(8).push(pcm), expected.encoder(8).push(pcm))


def test_so_can_a_model_of_transformers(tiny_transformers: Path, cache: Path) -> None:
    info = CodecModel.open(tiny_transformers).info
    assert (info.name, info.levels, info.default_levels) == ("tiny-mimi", 32, 8)
    assert resolve(tiny_transformers) == resolve(tiny_transformers / "model.safetensors") == entries(cache)[0]


def test_whatever_decides_what_comes_out_decides_the_entry(
    tiny_transformers: Path, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(tiny_transformers, tmp_path / "mine")
    config, weights = tmp_path / "mine" / "config.json", tmp_path / "mine" / "model.safetensors"
    resolve(tmp_path / "mine")
    config.write_text(config.read_text().replace('"sliding_window": 8', '"sliding_window": 9'))
    assert (
        CodecModel.open(tmp_path / "mine").info.encoder_state_bytes
        > CodecModel.open(tiny_transformers).info.encoder_state_bytes
    )
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    resolve(tmp_path / "mine")
    monkeypatch.setattr("codec_core.__version__", "0.0.0.dev0")
    resolve(tmp_path / "mine")
    assert len(entries(cache)) == 5


def test_what_is_no_checkpoint_is_left_alone(tiny_gguf: Path, tmp_path: Path, cache: Path) -> None:
    (tmp_path / "page.safetensors").write_text("<!DOCTYPE html>")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").mkdir()
    for path in (tiny_gguf, *(tmp_path / name for name in ("page.safetensors", "pipe", "empty", "none"))):
        assert resolve(path) == path
    with pytest.raises(ModelFormatError):
        CodecModel.open(tmp_path / "page.safetensors")
    assert not cache.exists()


def test_a_broken_checkpoint_leaves_nothing(tiny_checkpoint: Path, tmp_path: Path, cache: Path) -> None:
    data = tiny_checkpoint.read_bytes()
    (tmp_path / "x.safetensors").write_bytes(data[:-4])
    with pytest.raises(CheckpointError, match="file size"):
        CodecModel.open(tmp_path / "x.safetensors")
    (tmp_path / "x.safetensors").write_bytes(
        data.replace(b"encoder.model.0.conv.conv.bias", b"encoder.model.9.conv.conv.bias", 1)
    )
    with pytest.raises((CheckpointError, ModelContractError)):
        CodecModel.open(tmp_path / "x.safetensors")
    assert entries(cache) == []


def test_a_directory_of_another_kind_says_what_was_looked_for(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"no model\.safetensors, expected a model of transformers"):
        CodecModel.open(tmp_path)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_what_changes_before_the_conversion_is_not_published(
    name: str, tiny_transformers: Path, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(tiny_transformers, tmp_path / "mine")
    changed = tmp_path / "mine" / name
    before = changed.read_bytes()
    after = before.replace(b'"sliding_window": 8', b'"sliding_window": 9') if name == "config.json" else before[:-1] + b"\1"
    assert after != before

    def convert_another(*arguments: Any, **settings: Any) -> ConversionReport:
        changed.write_bytes(after)
        report = convert_model(*arguments, **settings)
        changed.write_bytes(before)
        assert not list((cache / "converted").glob("[!.]*"))
        return report

    monkeypatch.setattr("codec_core.convert.convert_model", convert_another)
    with pytest.raises(ModelAccessError, match="a file that changed while it was read"):
        resolve(tmp_path / "mine")
    assert entries(cache) == []


def test_a_config_that_is_not_read_does_not_matter(tiny_checkpoint: Path, tmp_path: Path, cache: Path) -> None:
    shutil.copyfile(tiny_checkpoint, tmp_path / "x.safetensors")
    (tmp_path / "config.json").write_text("a page about something else")
    entry = resolve(tmp_path / "x.safetensors")
    assert entries(cache) == [entry]


def test_a_watcher_is_told(tiny_checkpoint: Path, cache: Path) -> None:
    told: list[str] = []
    seen: list[tuple[int, int]] = []

    @contextlib.contextmanager
    def watcher(text: str) -> Iterator[Progress]:
        told.append(text)
        yield lambda done, total: seen.append((done, total))

    with watched(watcher):
        resolve(tiny_checkpoint)
        resolve(tiny_checkpoint)
    assert told == [f"converting {tiny_checkpoint}, once, to {entries(cache)[0]}"]
    assert seen[-1][0] == seen[-1][1] > 0


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path) -> None:
    assert cache_directory() == cache
    monkeypatch.delenv("MIMI_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_directory() == tmp_path / "xdg" / "mimi"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_directory() == tmp_path / "home" / ".cache" / "mimi"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_directory() == tmp_path / "home" / ".cache" / "mimi"


def test_a_pulled_model_has_a_name(tiny_gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pulled_path("tiny").parent.mkdir(parents=True)
    shutil.copyfile(tiny_gguf, pulled_path("tiny"))
    Path("tiny").write_text("a file of that name")
    assert CodecModel.open("tiny").info.path == str(pulled_path("tiny"))
    with pytest.raises(ModelFormatError):
        CodecModel.open("./tiny")


def test_a_cache_that_cannot_be_made(tiny_checkpoint: Path, cache: Path) -> None:
    cache.write_text("a file where the directory should be")
    with pytest.raises(ModelAccessError, match="MIMI_CACHE_DIR names another place"):
        CodecModel.open(tiny_checkpoint)


READ_ONLY = """
import os, sys
from codec_core import CodecModel
from codec_core.convert import converter
from codec_core.errors import ModelAccessError
if os.geteuid() == 0:
    os.setuid(65534)  # root may write everywhere
try:
    CodecModel.open(sys.argv[1])
except ModelAccessError as error:
    print(error)
"""


def test_a_cache_that_may_not_be_written(tiny_checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own cannot be entered by another user
        cache, checkpoint = Path(folder) / "cache", Path(folder) / "x.safetensors"
        (cache / "converted").mkdir(parents=True)
        shutil.copyfile(tiny_checkpoint, checkpoint)
        for path, mode in ((Path(folder), 0o755), (cache, 0o755), (cache / "converted", 0o555)):
            path.chmod(mode)
        monkeypatch.setenv("MIMI_CACHE_DIR", str(cache))
        command = [sys.executable, "-c", READ_ONLY, checkpoint]
        done = subprocess.run(command, capture_output=True, check=True, text=True, cwd=folder)
        assert "Permission denied, expected a cache that can be written" in done.stdout
        assert entries(cache) == []


FULL = """
import resource, sys
from codec_core import CodecModel
from codec_core.errors import ModelAccessError
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    CodecModel.open(sys.argv[1])
except ModelAccessError as error:
    print(error)
"""


def test_a_cache_without_room(tiny_checkpoint: Path, tmp_path: Path, cache: Path) -> None:
    command = [sys.executable, "-c", FULL, tiny_checkpoint]
    done = subprocess.run(command, capture_output=True, check=True, text=True, cwd=tmp_path)
    assert "File too large, expected a cache that can be written; MIMI_CACHE_DIR names another place" in done.stdout
    assert entries(cache) == []


def test_processes_that_start_at_once_agree(tiny_checkpoint: Path, tiny_gguf: Path, tmp_path: Path, cache: Path) -> None:
    script = "import sys; from codec_core import CodecModel; print(CodecModel.open(sys.argv[1]).info.path)"
    command = [sys.executable, "-c", script, tiny_checkpoint]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) for _ in range(4)]
    found = {process.communicate(timeout=60)[0].strip() for process in running}
    assert [process.returncode for process in running] == [0] * 4
    assert {str(path) for path in entries(cache)} == found
    assert Path(found.pop()).read_bytes() == tiny_gguf.read_bytes()


def test_the_first_to_finish_keeps_its_entry(tiny_checkpoint: Path, tiny_gguf: Path, cache: Path) -> None:
    others: list[int] = []

    @contextlib.contextmanager
    def another_process(said: str) -> Iterator[Progress]:
        def progress(_done: int, _total: int) -> None:
            entry = Path(said.rpartition(" to ")[2])
            if not entry.exists():
                shutil.copyfile(tiny_gguf, entry)
                others.append(entry.stat().st_ino)

        yield progress

    with watched(another_process):
        entry = resolve(tiny_checkpoint)
    assert others == [entry.stat().st_ino]
    assert entries(cache) == [entry]


def test_what_killed_conversions_left_is_swept_when_it_is_old(tiny_checkpoint: Path, cache: Path) -> None:
    folder = cache / "converted"
    folder.mkdir(parents=True)
    old, young = folder / ".a.gguf.0123.partial", folder / ".b.gguf.4567.partial"
    old.touch()
    young.touch()
    os.utime(old, (time.time() - 90_000,) * 2)
    entry = resolve(tiny_checkpoint)
    assert entries(cache) == [young, entry]
