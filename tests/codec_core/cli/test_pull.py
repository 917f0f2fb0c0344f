"""``mimi pull`` as a process of its own, against a server that speaks the hub's protocol on a real socket."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codec_core import CodecModel
from codec_core.synth import write_synthetic

PIECE_BYTES = 10 << 20
"""What the client keeps of a download that was cut is a multiple of this."""
Pull = Callable[..., subprocess.CompletedProcess[str]]


REVISION = "0123456789abcdef0123456789abcdef01234567"
"""The one revision that the hub of conftest has."""


def entry(repository: str, file: str, sha256: str, **more: Any) -> str:
    fields = {
        "description": "a model for tests",
        "repository": repository,
        "revision": REVISION,
        "file": file,
        "sha256": sha256,
        "sha256_verified": True,
        "licence": "Apache-2.0",
        **more,
    }
    return "\n".join(f"{key} = {json.dumps(value)}" for key, value in fields.items())


@pytest.fixture
def catalogue(hub: Any, tmp_path: Path) -> Path:
    sha256 = {name: hashlib.sha256(data).hexdigest() for name, data in hub.files.items()}
    entries = {
        "tiny": entry("someone/tiny", "tiny.safetensors", sha256["someone/tiny/tiny.safetensors"]),
        "theirs": entry(
            "someone/theirs", "model.safetensors", sha256["someone/theirs/model.safetensors"], also=["config.json"]
        ),
        "wrong": entry("someone/tiny", "tiny.safetensors", "0" * 64, sha256_verified=False),
        "gone": entry("someone/tiny", "gone.safetensors", "0" * 64),
        "elsewhen": entry("someone/tiny", "tiny.safetensors", "0" * 64, revision="f" * 40),
    }
    path = tmp_path / "catalogue.toml"
    path.write_text("\n".join(f"[{name}]\n{text}\n" for name, text in entries.items()))
    return path


@pytest.fixture
def pull(hub: Any, catalogue: Path, tmp_path: Path) -> Pull:
    """pull(*arguments, **environment) runs ``mimi pull``."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "MIMI_"))}
    environment |= {
        "HF_ENDPOINT": f"http://127.0.0.1:{hub.port}",
        "HF_HOME": str(tmp_path / "hf"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "MIMI_CACHE_DIR": str(tmp_path / "cache"),
        "MIMI_CATALOGUE": str(catalogue),
        "NO_PROXY": "127.0.0.1",
    }

    def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).with_name("mimi")), "pull", *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, env=environment | more, timeout=120, check=False
        )

    return run


@pytest.fixture
def pulled(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "pulled"


def kept(folder: Path) -> list[str]:
    """Files of the hub's cache that hold anything of a model."""
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and path.stat().st_size > 1000)


def test_fetch_convert_and_open_by_name(
    pull: Pull, hub: Any, pulled: Path, tiny_gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = pull("tiny")
    assert (done.returncode, done.stdout) == (0, f"{pulled / 'tiny.gguf'}\n")
    assert done.stderr.startswith("converting ")
    assert hub.downloads == ["tiny.safetensors"]
    monkeypatch.setenv("MIMI_CACHE_DIR", str(pulled.parent))
    found, direct = CodecModel.open("tiny").info, CodecModel.open(tiny_gguf).info
    assert (found.path, found.name, found.levels) == (str(pulled / "tiny.gguf"), "tiny", direct.levels)
    hub.requests.clear()
    again = pull()  # without a name it is the first of the catalogue
    assert (again.returncode, again.stdout, again.stderr) == (0, done.stdout, "")
    assert hub.requests == []


def test_a_model_of_transformers_brings_its_config(pull: Pull, hub: Any, pulled: Path) -> None:
    done = pull("theirs", "--json")
    assert json.loads(done.stdout)["path"] == str(pulled / "theirs.gguf")
    assert hub.downloads == ["model.safetensors", "config.json"]
    info = CodecModel.open(pulled / "theirs.gguf").info
    assert (info.name, info.default_levels) == ("theirs", 8)


def test_a_cut_connection_is_taken_up_where_it_ended(
    pull: Pull, hub: Any, catalogue: Path, pulled: Path, tmp_path: Path
) -> None:
    write_synthetic(tmp_path / "mini.safetensors", "mini")
    data = hub.files["someone/mini/mini.safetensors"] = (tmp_path / "mini.safetensors").read_bytes()
    catalogue.write_text("[mini]\n" + entry("someone/mini", "mini.safetensors", hashlib.sha256(data).hexdigest()))
    hub.cut_after_bytes = [PIECE_BYTES + 1000, PIECE_BYTES + 2000]
    done = pull("mini")
    assert done.returncode == 0, done.stderr
    pieces = [f" bytes={count * PIECE_BYTES}-" if count else "" for count in range(3)]
    assert hub.downloads == [f"mini.safetensors{wanted}" for wanted in pieces]
    assert len(data) > 2 * PIECE_BYTES + 2000
    assert (pulled / "mini.gguf").is_file()


def test_another_hash_is_refused_and_nothing_kept(pull: Pull, hub: Any, pulled: Path, tmp_path: Path) -> None:
    done = pull("wrong")
    sha256 = hashlib.sha256(hub.files["someone/tiny/tiny.safetensors"]).hexdigest()
    assert (done.returncode, done.stdout) == (1, "")
    warning, error = done.stderr.splitlines()
    assert warning.startswith("warning: wrong: the catalogue's sha256 is as others state it")
    assert error == (
        f"error[checkpoint]: someone/tiny: tiny.safetensors: sha256: found {sha256}, expected {'0' * 64}"
        " (as the catalogue states it, unverified)"
    )
    assert kept(tmp_path / "hf") == []
    assert list(pulled.iterdir()) == []


def test_a_file_others_have_fetched_is_refused_but_not_removed(pull: Pull, tmp_path: Path) -> None:
    assert pull("tiny").returncode == 0
    before = kept(tmp_path / "hf")
    assert len(before) == 2  # the file, and the link to it
    done = pull("wrong")
    assert done.returncode == 1
    assert str(tmp_path / "hf") in done.stderr
    assert kept(tmp_path / "hf") == before


@pytest.mark.parametrize("how", ["--offline", "HF_HUB_OFFLINE"])
def test_offline(how: str, pull: Pull, hub: Any, pulled: Path) -> None:
    def offline() -> subprocess.CompletedProcess[str]:
        return pull("tiny", "--offline") if how == "--offline" else pull("tiny", HF_HUB_OFFLINE="1")

    missed = offline()
    assert missed.returncode == 1
    assert missed.stderr.startswith("error[unavailable]: someone/tiny: tiny.safetensors: found not in the hub's cache")
    assert hub.requests == []
    assert pull("tiny").returncode == 0
    (pulled / "tiny.gguf").unlink()
    hub.requests.clear()
    assert offline().stdout == f"{pulled / 'tiny.gguf'}\n"
    assert hub.requests == []


@pytest.mark.parametrize(("name", "reason"), [("gone", "Entry Not Found"), ("elsewhen", "Revision Not Found")])
def test_what_the_hub_does_not_have(name: str, reason: str, pull: Pull) -> None:
    done = pull(name)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error[unavailable]: someone/tiny: ")
    assert len(done.stderr.splitlines()) == 1
    assert reason in done.stderr or "404" in done.stderr


def test_an_endpoint_that_is_no_hub(pull: Pull, hub: Any, tmp_path: Path) -> None:
    hub.commit_header = "X-Something-Else"
    done = pull("tiny")
    assert (done.returncode, done.stdout) == (1, "")
    expected = f"error[unavailable]: someone/tiny: tiny.safetensors: found nothing at http://127.0.0.1:{hub.port}: "
    assert done.stderr.startswith(expected)
    assert kept(tmp_path / "hf") == []


def test_weights_that_are_no_mimi(pull: Pull, hub: Any, catalogue: Path, pulled: Path) -> None:
    data = hub.files["someone/tiny/tiny.safetensors"][:-4]
    hub.files["someone/tiny/tiny.safetensors"] = data
    catalogue.write_text("[tiny]\n" + entry("someone/tiny", "tiny.safetensors", hashlib.sha256(data).hexdigest()))
    done = pull("tiny")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error[checkpoint]: ")
    assert list(pulled.iterdir()) == []


def test_without_the_extra(pull: Pull, tmp_path: Path) -> None:
    (tmp_path / "bare" / "huggingface_hub").mkdir(parents=True)
    (tmp_path / "bare" / "huggingface_hub" / "__init__.py").write_text("raise ImportError('as if it were not there')")
    done = pull("tiny", PYTHONPATH=str(tmp_path / "bare"))
    assert done.returncode == 1
    assert done.stderr == (
        "error[unavailable]: huggingface_hub: found not installed, expected the package that fetches weights:"
        " pip install huggingface_hub\n"
    )
    assert pull("--list", PYTHONPATH=str(tmp_path / "bare")).returncode == 0


def test_list(pull: Pull, pulled: Path) -> None:
    assert pull("tiny").returncode == 0
    listed = pull("--list", COLUMNS="200").stdout
    assert re.search(r"^tiny +a model for tests +someone/tiny@01234567 +Apache-2.0 +yes", listed, re.MULTILINE)
    assert re.search(r"^theirs .* no", listed, re.MULTILINE)
    found = json.loads(pull("--list", "--json").stdout)
    assert list(found) == ["tiny", "theirs", "wrong", "gone", "elsewhen"]
    assert (found["tiny"]["path"], found["theirs"]["path"]) == (str(pulled / "tiny.gguf"), None)


def test_a_name_that_is_not_in_the_catalogue(pull: Pull) -> None:
    done = pull("mimi")
    assert (done.returncode, done.stdout) == (2, "")
    assert "tiny, theirs, wrong, gone, elsewhen" in done.stderr
