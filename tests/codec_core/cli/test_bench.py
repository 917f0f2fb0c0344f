from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from codec_core import CodecModel
from codec_core._ext import Kernels

FASTEST = ("--seconds", 0, "--levels", 4)


def test_json(mimi, tiny_gguf: Path) -> None:
    found = json.loads(mimi("bench", "-m", tiny_gguf, "--batch", "1,3", *FASTEST, "--json").output)
    directions = ("encode", "decode", "duplex")
    assert [(row["batch"], row["direction"]) for row in found["results"]] == [(b, d) for b in (1, 3) for d in directions]
    assert {row["levels"] for row in found["results"]} == {4}
    assert found["model"]["sha256"] == CodecModel.open(tiny_gguf).info.sha256
    assert found["machine"]["cores"] >= 1
    assert found["memory"]["sessions"] == 3
    assert found["memory"]["within_bound"] is True
    assert found["loading"]["file_bytes"] == tiny_gguf.stat().st_size
    assert found["limits"]["work"]["4"]["encode"]["macs"] > 0
    assert [peak["threads"] for peak in found["limits"]["peaks"]] == [1]
    assert found["stages"] == found["skipped"] == []


def test_variants_and_profile(mimi, tiny_gguf: Path) -> None:
    variants = ("--numerics", "kyutai,ggml", "--isa", "all", "--threads", "1,2", "--batch", 2, "--profile")
    outcome = mimi("bench", "-m", tiny_gguf, *FASTEST, *variants)
    assert (outcome.status, outcome.errors) == (0, "")
    lines = outcome.output.splitlines()
    for isa in Kernels.usable_isas():
        for numerics in ("kyutai", "ggml"):
            assert f"{numerics}, {isa}, 1 thread, 4 levels" in lines
            assert f"{numerics}, {isa}, 2 threads, 4 levels" in lines
            assert f"decode, batch 2, 4 levels, {numerics}, {isa}, 1 thread: where the time goes" in lines
    rows = [line.split() for line in lines if line.startswith((" encode ", " duplex "))]
    assert [row[-1] for row in rows[:2]] == ["1.00", "1.00"]
    assert len(rows) == 2 * 2 * 2 * len(Kernels.usable_isas())
    assert any(line.startswith("  encoder.transformer ") for line in lines)
    assert sum(line.endswith("█" * 40) for line in lines) >= 2 * 2 * len(Kernels.usable_isas())
    assert all(line == line.rstrip() for line in lines)


def test_an_absent_instruction_set_is_skipped(mimi, tiny_gguf: Path) -> None:
    outcome = mimi("bench", "-m", tiny_gguf, *FASTEST, "--batch", 1, "--isa", "sse9,scalar")
    assert outcome.status == 0
    assert outcome.errors.startswith("warning: skipped: instruction set: found sse9")
    assert "kyutai, scalar, 1 thread, 4 levels" in outcome.output
    assert mimi("bench", "-m", tiny_gguf, *FASTEST, "--isa", "sse9").status == 1


@pytest.mark.parametrize("setting", ["--batch", "--levels", "--threads"])
def test_lists_of_numbers(mimi, tiny_gguf: Path, setting: str) -> None:
    for bad in ("", "0", "1,,2", "x", "-1", "99999999"):
        outcome = mimi("bench", "-m", tiny_gguf, f"{setting}={bad}", "--seconds", 0)
        assert outcome.status == 2, bad
        assert outcome.errors.startswith("error[setting]: "), bad
    assert mimi("bench", "-m", tiny_gguf, "--levels", 33).status == 2
    assert mimi("bench", "-m", tiny_gguf, "--numerics", "exact").status == 2


def test_peers_that_are_not_there(mimi, tiny_gguf: Path, tiny_checkpoint: Path) -> None:
    if any(importlib.util.find_spec(kind) for kind in ("moshi", "rustymimi", "transformers")):
        pytest.skip("a peer is installed")
    arguments = ("bench", "--peers", "-m", tiny_gguf, "--peer-weights", tiny_checkpoint, "--batch", 1, *FASTEST)
    outcome = mimi(*arguments)
    assert (outcome.status, outcome.output) == (1, "")
    assert f"warning: rustymimi: not installed in {sys.executable}" in outcome.errors
    assert "error[unavailable]: peers: found none" in outcome.errors
    assert mimi(*arguments, "--levels", "4,8").status == 2
    assert mimi("bench", "--peers", "-m", tiny_gguf).status == 2
