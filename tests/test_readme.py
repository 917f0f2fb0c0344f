"""What the README tells a newcomer to type does what it says."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile

from codec_core import CodecModel
from codec_core.clip import encode_clip
from codec_core.codes_file import read_codes
from codec_core.data import open as open_corpus
from codec_core.synth import write_synthetic

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
RECORDING = ROOT / "tests" / "golden" / "vectors" / "signals" / "sample_2.wav"
CHECKPOINT = "tokenizer-e351c8d8-checkpoint125.safetensors"
PRINTED_ADDRESS = "127.0.0.1:8000"
TIMEOUT_S = 60
# The commands and the interpreter of this installation, as a newcomer's activated environment has them.
ENVIRONMENT = os.environ | {"PATH": sysconfig.get_path("scripts") + os.pathsep + os.environ.get("PATH", os.defpath)}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.M | re.S)


def commands(program: str) -> list[str]:
    return [line for block in blocks("sh") for line in block.splitlines() if line.startswith(f"{program} ")]


def run(arguments: list[str], folder: Path) -> str:
    done = subprocess.run(
        arguments, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a newcomer has a recording of their own, and a folder of some."""
    shutil.copy(RECORDING, tmp_path / "speech.wav")
    (tmp_path / "speech").mkdir()
    shutil.copy(RECORDING, tmp_path / "speech")
    return tmp_path


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """``mimi serve`` as a process of its own; yields host and port."""
    log = tmp_path_factory.mktemp("service") / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["mimi", "serve"],
            executable=shutil.which("mimi", path=ENVIRONMENT["PATH"]),
            cwd=log.parent,
            env=ENVIRONMENT | {"MIMI_PORT": "0"},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        deadline_s = time.monotonic() + TIMEOUT_S
        while not (address := re.search(r"serves on http://(\S+)", log.read_text())):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline_s, log.read_text()
            time.sleep(0.05)
        yield address[1]
    finally:
        process.terminate()
        assert process.wait(TIMEOUT_S) == 0


def test_ci_runs_the_first_two_lines():
    first_two = [block.strip() for block in blocks("sh")[:2]]
    script = (ROOT / ".ci" / "run").read_text()
    assert re.findall(r'^(?:run|test)_line="(.*)"$', script, re.M) == first_two
    assert all(line in (ROOT / "CONTRIBUTING.md").read_text() for line in first_two[1:])


def test_the_client_is_twenty_lines_and_prints_what_is_shown(service: str, folder: Path, default_model: CodecModel):
    client = blocks("python")[0]
    assert len([line for line in client.splitlines() if line.strip()]) == 20
    assert PRINTED_ADDRESS in client
    (folder / "client.py").write_text(client.replace(PRINTED_ADDRESS, service))
    printed = run([sys.executable, "client.py", "speech.wav"], folder)

    shown = blocks("text")[0]
    pattern = re.escape(shown).replace(re.escape("...\n"), r"(?:.*\n)*?")
    for left_out in (re.escape(", ..."), re.escape("...")):
        pattern = pattern.replace(left_out, ".*?")
    assert re.fullmatch(pattern, printed), printed

    pcm, _ = soundfile.read(RECORDING, dtype="float32")
    frames = [line.split(" ", 2) for line in printed.splitlines() if line[0].isdigit()]
    codes = np.array([[int(code) for code in frame[2].strip("()").split(",")] for frame in frames]).T
    assert [(int(sequence), int(position)) for sequence, position, _ in frames] == [(i, 1920 * i) for i in range(len(frames))]
    assert np.array_equal(codes, encode_clip(default_model, pcm, 8))


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl on this machine")
def test_http_lines(service: str, folder: Path, default_model: CodecModel):
    for line in commands("curl"):
        run([*shlex.split(line.replace(PRINTED_ADDRESS, service)), "--fail", "--silent", "--show-error"], folder)
    pcm, _ = soundfile.read(RECORDING, dtype="float32")
    assert np.array_equal(read_codes(folder / "codes.json").codes, encode_clip(default_model, pcm))
    assert soundfile.info(folder / "back.wav").frames == len(pcm)


def test_command_lines(folder: Path):
    write_synthetic(folder / CHECKPOINT, "tiny")
    lines = commands("mimi")
    assert {shlex.split(line)[1] for line in lines} == {"encode", "decode", "tokenize", "inspect", "bench", "convert"}
    for line in lines:
        quickly = ["--seconds", "0"] if line.startswith("mimi bench") else []
        run([*shlex.split(line, comments=True), *quickly], folder)
    assert soundfile.info(folder / "back.wav").frames == soundfile.info(RECORDING).frames
    assert [codes.shape for codes, _ in open_corpus(folder / "codes")] == [(32, 88)]
    assert CodecModel.open(folder / "mimi.gguf").info.levels == 32


def test_library_lines(folder: Path):
    program = blocks("python")[1] + "\nprint(codes.shape, sound.shape, sound.dtype)\n"
    assert run([sys.executable, "-c", program], folder) == "(8, 25) (48000,) float32\n"


def test_the_embedded_model_is_as_said(default_model: CodecModel):
    """The figures of quality are those of the model's own page."""
    page = (ROOT / "docs" / "default_model" / "README.md").read_text()
    rows = {int(row[1]): row for row in re.finditer(r"^\| (\d+) \| [\d.]+ \| ([\d.]+) \| [\d.]+ \| ([\d.]+) \|", page, re.M)}
    prose = " ".join(README.split())
    said = re.search(r"STOI ([\d.]+) on average at its (\d+) levels, ([\d.]+) at (\d+)\).*?\(PESQ ([\d.]+)\)", prose)
    assert said is not None
    levels, fewer = int(said[2]), int(said[4])
    assert levels == default_model.info.default_levels
    assert float(said[1]) == pytest.approx(float(rows[levels][2]), abs=0.005)
    assert float(said[3]) == pytest.approx(float(rows[fewer][2]), abs=0.005)
    assert float(said[5]) == pytest.approx(float(rows[levels][3]), abs=0.05)
