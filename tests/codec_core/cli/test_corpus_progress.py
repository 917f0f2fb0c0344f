"""The display of a run: on a terminal, what it shows; elsewhere, nothing."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import soundfile

from codec_core.cli.corpus_progress import corpus_progress, rate_text
from codec_core.corpus.tally import Tally


def test_rates_and_errors():
    counts = replace(Tally(10).counts(), frames=90_000, seconds=100.0)
    assert rate_text(counts) == "2.00 audio hours, 0.0200/s (72 x real time)"
    assert rate_text(replace(counts, errors=3)) == "2.00 audio hours, 0.0200/s (72 x real time), 3 errors"
    assert rate_text(replace(counts, seconds=0.0)).endswith("(0 x real time)")


def test_elsewhere_than_on_a_terminal_nothing_is_shown(capsys: pytest.CaptureFixture[str]):
    with corpus_progress(Tally(10)):
        pass
    assert capsys.readouterr() == ("", "")


def test_on_a_terminal(tiny_gguf: Path, tmp_path: Path, speechlike):
    for at in range(30):
        soundfile.write(tmp_path / f"{at:02d}.wav", speechlike(400_000, at), 24000)
    ours, theirs = pty.openpty()
    mimi = str(Path(sys.executable).with_name("mimi"))
    command = [mimi, "tokenize", str(tmp_path), "-o", str(tmp_path / "out"), "-m", str(tiny_gguf), "--format", "npy"]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "150"}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:
        pass  # Linux ends a terminal's reading so, once the other side is closed.
    finally:
        os.close(ours)
    assert process.wait(60) == 0
    assert b"tokenizing" in shown
    assert b"audio hours" in shown
    assert b"/30" in shown
