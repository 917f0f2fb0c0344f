"""``docs/tokenize.md``: its lists are those of the code, and what it says to type works."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from codec_core.corpus.formats import room_of
from codec_core.corpus.rows import RowFacts
from codec_core.corpus.settings import SHARD_FORMATS

DOCUMENT = (Path(__file__).parents[2] / "docs" / "tokenize.md").read_text()
SNIPPETS = re.findall(r"^```python\n(.*?)^```$", DOCUMENT, re.M | re.S)
MIMI = Path(sys.executable).with_name("mimi")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``codes/``, of three recordings in three shards."""
    folder = tmp_path_factory.mktemp("documented")
    (folder / "speech").mkdir()
    for at in range(3):
        pcm = np.random.default_rng(at).standard_normal(30_000 + at) / 10
        soundfile.write(folder / "speech" / f"{at}.wav", pcm, 24000)
    run(folder, MIMI, "tokenize", "speech/", "-o", "codes/", "--levels", 8, "--shard-size", 1)
    return folder


def run(folder: Path, *command: object) -> str:
    done = subprocess.run([*map(str, command)], cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def first_cells(header: str) -> list[str]:
    table = DOCUMENT.partition(header)[2].split("\n\n")[0]
    return re.findall(r"^\| `([^`]+)` \|", table, re.M)


def test_columns_are_those_of_a_row():
    assert first_cells("| column | type | is |") == [*RowFacts.__dataclass_fields__, "codes"]


def test_formats_and_their_files():
    assert tuple(first_cells("| format | files | codes |")) == SHARD_FORMATS
    for form in SHARD_FORMATS:
        line = next(line for line in DOCUMENT.splitlines() if line.startswith(f"| `{form}` |"))
        assert sorted(re.findall(r"`shard-N([^`]+)`", line)) == sorted(room_of(form).SUFFIXES)


def test_every_option_it_names_is_one():
    help_text = subprocess.run([MIMI, "tokenize", "--help"], capture_output=True, text=True, check=True).stdout
    named = {option for line in DOCUMENT.splitlines() for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", line)}
    assert named - {"--row", "--head", "--address", "--batch"} <= set(re.findall(r"--[a-z][a-z-]*", help_text))


@pytest.mark.parametrize("snippet", SNIPPETS, ids=range(len(SNIPPETS)))
def test_snippets_run(snippet: str, folder: Path):
    missing = [name for name in re.findall(r"^(?:import|from) (\w+)", snippet, re.M) if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed")
    (folder / "snippet.py").write_text(snippet)
    output = run(folder, sys.executable, "snippet.py")
    if "print(" in snippet:
        assert len(output.splitlines()) in (1, 3)


def test_commands_run(folder: Path):
    """Without the model's file, which a reader has; ``--row 17`` becomes a row that is there."""
    commands = [line.partition("#")[0].split() for line in DOCUMENT.splitlines() if line.startswith("mimi ")]
    local = [words[1:] for words in commands if "--ray" not in words]
    assert len(local) == 5
    run(folder, "cp", "-r", "codes", "other")
    for words in local[1:]:
        spoken = " ".join(words).replace(" --model mimi.gguf", "").replace("--row 17", "--row 2")
        run(folder, MIMI, *spoken.split())
    assert (folder / "codes" / "report.html").exists()
    assert soundfile.info(folder / "row.wav").frames == 30_002
