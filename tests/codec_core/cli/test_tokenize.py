"""``mimi tokenize`` on the tiny model, as a user meets it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from codec_core.codes_file import read_codes
from codec_core.data import open as open_corpus

MOST_RUNS = 60


@pytest.fixture
def audio(tmp_path: Path, speechlike: Callable[[int, int], np.ndarray]) -> Path:
    folder = tmp_path / "audio"
    folder.mkdir()
    for at, (suffix, rate) in enumerate((("wav", 24000), ("flac", 16000), ("ogg", 44100), ("mp3", 48000))):
        soundfile.write(folder / f"{at}.{suffix}", speechlike(9000 + 777 * at, at), rate)
    return folder


def test_codes_are_those_of_mimi_encode(mimi, audio: Path, tiny_gguf: Path, tmp_path: Path):
    outcome = mimi("tokenize", audio, "-o", tmp_path / "out", "-m", tiny_gguf, "-k", 8)
    assert (outcome.status, outcome.errors) == (0, "")
    assert outcome.output.startswith(f"{tmp_path / 'out'}: 4 rows, 0.000 audio hours, 1 shards, 0 errors")
    for codes, metadata in open_corpus(tmp_path / "out"):
        mimi("encode", metadata["source"], "-o", tmp_path / "one.json", "-m", tiny_gguf, "-k", 8)
        document = read_codes(tmp_path / "one.json")
        assert np.array_equal(document.codes, codes)
        assert document.samples == metadata["samples"]
        assert document.provenance == open_corpus(tmp_path / "out").provenance


def test_bad_inputs_are_listed_and_the_exit_status_says_so(mimi, audio: Path, tiny_gguf: Path, tmp_path: Path):
    (audio / "bad.wav").write_text("text")
    outcome = mimi("tokenize", audio, "-o", tmp_path / "out", "-m", tiny_gguf, "--format", "npy", "--json")
    assert outcome.status == 3
    table = tmp_path / "out" / "errors.jsonl"
    assert outcome.errors == f"warning: 1 of 5 inputs were not encoded; {table} says why\n"
    (entry,) = [json.loads(line) for line in table.read_text().splitlines()]
    assert (entry["source"], entry["code"]) == (str(audio / "bad.wav"), "audio_file")
    answer = json.loads(outcome.output)
    assert (answer["rows"], answer["errors"], answer["inputs"], answer["corpus"]["levels"]) == (4, 1, 5, 32)
    again = mimi("tokenize", audio, "-o", tmp_path / "out", "-m", tiny_gguf, "--format", "npy", "--json")
    assert (again.status, json.loads(again.output)["frames"]) == (3, 0)


def test_a_row_to_listen_to(mimi, audio: Path, tiny_gguf: Path, tmp_path: Path):
    mimi("tokenize", audio, "-o", tmp_path / "out", "-m", tiny_gguf, "--format", "webdataset")
    assert mimi("decode", tmp_path / "out", "--row", 2, "-o", tmp_path / "row.wav", "-m", tiny_gguf).status == 0
    mimi("encode", audio / "2.ogg", "-o", tmp_path / "one.json", "-m", tiny_gguf)
    mimi("decode", tmp_path / "one.json", "-o", tmp_path / "one.wav", "-m", tiny_gguf)
    assert (tmp_path / "row.wav").read_bytes() == (tmp_path / "one.wav").read_bytes()
    outcome = mimi("decode", tmp_path / "out", "--row", 9, "-o", tmp_path / "x.wav", "-m", tiny_gguf)
    assert (outcome.status, "error[codes_file]" in outcome.errors) == (1, True)


def test_verify_diff_and_report(mimi, audio: Path, tiny_gguf: Path, tmp_path: Path):
    for name, form in (("a", "npy"), ("b", "parquet")):
        mimi("tokenize", audio, "-o", tmp_path / name, "-m", tiny_gguf, "--format", form)
    outcome = mimi("tokenize", "--verify", tmp_path / "a", "-m", tiny_gguf)
    assert (outcome.status, outcome.output) == (0, f"{tmp_path / 'a'}: 2 files checked, 4 rows re-encoded: all as written\n")
    outcome = mimi("tokenize", "--diff", tmp_path / "a", tmp_path / "b")
    assert (outcome.status, outcome.output) == (0, "no difference\n")
    assert mimi("tokenize", "--report", tmp_path / "a").status == 0
    assert (tmp_path / "a" / "report.html").read_text().startswith("<!doctype html>")
    codes = np.load(tmp_path / "a" / "shard-000000.npy")
    codes[3, 1] ^= 1
    np.save(tmp_path / "a" / "shard-000000.npy", codes)
    outcome = mimi("tokenize", "--verify", tmp_path / "a", "-m", tiny_gguf, "--json")
    assert (outcome.status, len(json.loads(outcome.output)["findings"])) == (1, 1)
    outcome = mimi("tokenize", "--diff", tmp_path / "a", tmp_path / "b", "--json")
    answer = json.loads(outcome.output)
    assert (outcome.status, answer["differences"]) == (1, 1)
    assert "codes, frame 3, level 1" in answer["first"][0]["detail"]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["{audio}"], 2, "error[setting]: --output"),
        (["{audio}", "-o", "{out}", "--channels", "left"], 2, "error[setting]: channels"),
        (["{audio}", "-o", "{out}", "--shard-size", "0"], 2, "error[setting]: shard size"),
        (["{audio}", "-o", "{out}", "--levels", "33"], 2, "error[setting]: levels"),
        (["{out}*", "-o", "{out}"], 2, "error[setting]: input"),
        (["{audio}", "-o", "{audio}/0.wav"], 1, "error[codes_file]: "),
        (["{audio}", "-o", "{audio}"], 2, "error[setting]: input"),
        (["{audio}/0.wav", "-o", "{audio}/.."], 2, "error[setting]: input"),
        (["--verify", "--diff", "{out}"], 2, "error[setting]: options"),
        (["--diff", "{out}"], 2, "error[setting]: --diff"),
        (["--verify", "{out}"], 1, "error[codes_file]: "),
        (["--report", "{out}"], 1, "error[codes_file]: "),
    ],
)
def test_refusals(arguments: list[str], status: int, message: str, *, mimi, audio: Path, tiny_gguf: Path, tmp_path: Path):
    before = sorted(audio.iterdir())
    filled = [text.format(audio=audio, out=tmp_path / "out") for text in arguments]
    outcome = mimi("tokenize", *filled, "-m", tiny_gguf)
    assert (outcome.status, outcome.errors.startswith(message)) == (status, True), outcome.errors
    assert sorted(audio.iterdir()) == before


@pytest.mark.slow
def test_killed_at_any_time_it_ends_with_the_same_bytes(
    mimi_process, audio: Path, tiny_gguf: Path, rng: np.random.Generator, tmp_path: Path
):
    """kill -9 at a random time after a shard more is there, until all are; the bytes are then those of an undisturbed run."""
    for at in range(60):
        soundfile.write(audio / f"more-{at:02d}.wav", rng.standard_normal(int(rng.integers(20_000, 60_000))) / 9, 24000)
    (audio / "more-30.wav").write_bytes(b"")
    settings = ("-m", tiny_gguf, "--shard-size", 4, "--lanes", 2, "--threads", 1)
    undisturbed = mimi_process("tokenize", audio, "-o", tmp_path / "a", *settings)
    undisturbed.communicate(timeout=120)
    assert undisturbed.returncode == 3
    seen: list[int] = []
    for _ in range(MOST_RUNS):
        process = mimi_process("tokenize", audio, "-o", tmp_path / "b", *settings)
        while process.poll() is None and shards_in(tmp_path / "b") <= (seen[-1] if seen else 0):
            time.sleep(0.005)
        time.sleep(float(rng.uniform(0, 0.15)))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        seen.append(shards_in(tmp_path / "b"))
        if process.returncode == 3:
            break
    assert process.returncode == 3
    assert len(seen) > 3, "no run was killed before its end"
    first, second = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (tmp_path / "a", tmp_path / "b")
    )
    assert first == second
    print(f"killed with {seen[:-1]} of {seen[-1]} shards committed")


def shards_in(folder: Path) -> int:
    return len(list(folder.glob("ledger/shard-*.json")))


def peak_megabytes(process: subprocess.Popen[bytes]) -> float:
    """Wait for a process; return the most memory it had."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.communicate()
    assert process.returncode == 0
    return usage.ru_maxrss * 1024 / 1e6


@pytest.mark.slow
def test_memory_does_not_grow_with_a_file(mimi_process, tiny_gguf: Path, tmp_path: Path):
    """Two minutes and thirty: beyond the codes themselves, and room for the allocator's whims, the same."""
    peaks = []
    for minutes in (2, 30):
        path = tmp_path / f"{minutes}.wav"
        soundfile.write(path, np.zeros(minutes * 60 * 24000, np.int16), 24000)
        process = mimi_process("tokenize", path, "-o", tmp_path / str(minutes), "-m", tiny_gguf, "-k", 8, "--format", "npy")
        peaks.append(peak_megabytes(process))
    codes = 30 * 60 * 12.5 * 8 * 2 / 1e6
    assert peaks[1] < peaks[0] + codes + 12, peaks
