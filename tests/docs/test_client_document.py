"""docs/client.md: its examples run, its tables are those of the code."""

from __future__ import annotations

import dataclasses
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
from codec_core.client import LineOptions, StreamSettings, StreamStats
from codec_core.client.errors import RESUMABLE
from codec_core.client.protocol import GONE
from codec_core.clip import decode_clip, encode_clip
from codec_core.codes_file import read_codes
from codec_core.pcm import to_int16

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "client.md").read_text()
RECORDING = ROOT / "tests" / "golden" / "vectors" / "signals" / "sample_2.wav"
PRINTED_ADDRESS = "127.0.0.1:8000"
ENVIRONMENT = os.environ | {"PATH": sysconfig.get_path("scripts") + os.pathsep + os.environ.get("PATH", os.defpath)}
TIMEOUT_S = 60


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """``mimi serve`` as the page says; yields host and port."""
    log = tmp_path_factory.mktemp("service") / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "server", "--port", "0"], stdout=output, stderr=subprocess.STDOUT, cwd=log.parent
        )
    try:
        deadline_s = time.monotonic() + TIMEOUT_S
        while not (found := re.search(r"serves on http://(\S+)", log.read_text())):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline_s, log.read_text()
            time.sleep(0.05)
        yield found[1]
    finally:
        process.terminate()
        assert process.wait(TIMEOUT_S) == 0


def run(arguments: list[str], folder: Path, address: str) -> str:
    environment = ENVIRONMENT | {"MIMI_URL": f"ws://{address}"}
    done = subprocess.run(
        arguments, cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


EXPECTED = (
    "mimi-mini 8\n(8, 25) 48000\n(48000,)\n",
    r"(\d+ \d+ \[[\d, ]+\]\n){13}13 frames, lag 0 ms\n",
    r"(\d \[[\d, ]+\]\n){5}",
    "refused: levels: found 99, expected a whole number from 1 to 32\n",
)


@pytest.mark.parametrize("index", range(len(EXPECTED)))
def test_examples(index: int, address: str, tmp_path: Path):
    programs = blocks("python")
    assert len(programs) == len(EXPECTED)
    assert PRINTED_ADDRESS in programs[index]
    printed = run([sys.executable, "-c", programs[index].replace(PRINTED_ADDRESS, address)], tmp_path, address)
    expected = EXPECTED[index]
    assert printed == expected or re.fullmatch(expected, printed), printed


def test_command_lines(address: str, tmp_path: Path, default_model: CodecModel):
    shutil.copy(RECORDING, tmp_path / "speech.wav")
    lines = [shlex.split(line, comments=True) for block in blocks("sh") for line in block.splitlines()]
    assert len(lines) == 3
    for line in lines:
        run([arguments for arguments in line if arguments != "--paced"], tmp_path, address)
    pcm, _ = soundfile.read(RECORDING, dtype="float32")
    codes = encode_clip(default_model, pcm, 8)
    assert np.array_equal(read_codes(tmp_path / "codes.safetensors").codes, codes)
    sound, _ = soundfile.read(tmp_path / "back.wav", dtype="int16")
    assert np.array_equal(sound, to_int16(decode_clip(default_model, codes))[: len(pcm)])
    assert soundfile.info(tmp_path / "echo.wav").frames == len(pcm)


def test_settings_are_named():
    for field in dataclasses.fields(StreamSettings):
        assert f"`{field.name}`" in PAGE, field.name


def test_bounds_and_options():
    options = {field.name: field.default for field in dataclasses.fields(LineOptions)}
    named = {name.partition("(")[0] for name in re.findall(r"`([a-z_]+_(?:ms|bytes|frames))`", PAGE)}
    assert named <= options.keys() | {field.name for field in dataclasses.fields(StreamStats)} | {"retry_after_ms"}
    rows = re.findall(r"^\| [^|]+ \| `(max_\w+)`, (\d+)(?: (KiB|MiB))?", PAGE, re.M)
    units = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20}
    assert {name: int(number) * units[unit] for name, number, unit in rows} == {
        name: default for name, default in options.items() if name.startswith("max_")
    }


def test_what_is_resumed():
    table = PAGE[PAGE.index("| what happened |") : PAGE.index("Input that the service resamples")]
    for code in RESUMABLE - {"draining"} | GONE - {"snapshot"}:
        assert f"`{code}`" in table
