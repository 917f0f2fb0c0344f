"""``mimi convert``, ``inspect`` and ``synth``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codec_core.cli.report import human_bytes


def test_synth_convert_inspect(mimi, tiny_checkpoint: Path, tiny_gguf: Path, tmp_path: Path) -> None:
    source, model = tmp_path / "tiny.safetensors", tmp_path / "tiny.gguf"
    outcome = mimi("synth", "-o", source, "--preset", "tiny")
    assert (outcome.status, outcome.output) == (0, f"{source}: tiny, {human_bytes(source.stat().st_size)}\n")
    assert source.read_bytes() == tiny_checkpoint.read_bytes()
    assert mimi("synth", "-o", source, "--preset", "tiny").status == 1
    assert mimi("synth", "-o", source, "--preset", "tiny", "--force").status == 0
    assert mimi("synth", "-o", tmp_path / "x", "--preset", "huge").status == 2
    outcome = mimi("convert", source, "-o", model)
    assert "32 levels (32 by default)" in outcome.output
    assert "102 of 134 tensors copied byte for byte" in outcome.output
    assert model.read_bytes() == tiny_gguf.read_bytes()
    assert mimi("convert", source, "-o", model, "--dtype", "q8_0", "--force").status == 2


def test_convert_json(mimi, tiny_checkpoint: Path, tmp_path: Path) -> None:
    arguments = ("--dtype", "f16", "--levels", 4, "--numerics", "ggml", "--json")
    report = json.loads(mimi("convert", tiny_checkpoint, "-o", tmp_path / "x.gguf", *arguments).output)
    assert (report["weight_class"], report["default_levels"], report["numerics"]) == ("f16", 4, "ggml")
    found = json.loads(mimi("inspect", tmp_path / "x.gguf", "--json").output)
    assert found["metadata"]["moshi.mimi.source_sha256"] == report["source_sha256"]
    assert (found["weight_class"], found["geometry"]["default_levels"], found["numerics"]) == ("f16", 4, "ggml")
    assert found["file_bytes"] == (tmp_path / "x.gguf").stat().st_size


def test_convert_to_the_raw_form(mimi, small_raw_source: Path, tmp_path: Path) -> None:
    outcome = mimi("convert", small_raw_source / "x.safetensors", "-o", tmp_path / "raw.gguf", "--form", "raw")
    assert outcome.status == 0
    assert "f16, ggml numerics, 32 levels (8 by default)" in outcome.output
    assert json.loads(mimi("inspect", tmp_path / "raw.gguf", "--json").output)["metadata"] == {}
    arguments = ("convert", small_raw_source / "x.safetensors", "-o", tmp_path / "x.gguf")
    assert mimi(*arguments, "--form", "raw", "--levels", 4).status == 2
    assert mimi(*arguments, "--form", "plain").status == 2


def test_a_checkpoint_in_place_of_a_model(
    mimi, tiny_transformers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIMI_CACHE_DIR", str(tmp_path))
    first, second = (mimi("inspect", tiny_transformers, "--json") for _ in range(2))
    found = json.loads(first.output)
    assert found["path"].startswith(str(tmp_path))
    assert found["name"] == "tiny-mimi"
    assert first.errors == f"converting {tiny_transformers / 'model.safetensors'}, once, to {found['path']}\n"
    assert (second.output, second.errors) == (first.output, "")


def test_inspect_shows_what_matters(mimi, tiny_gguf: Path) -> None:
    outcome = mimi("inspect", tiny_gguf, "--tensors")
    assert outcome.status == 0
    for text in (
        "mimi-synth-tiny",
        "24000 Hz, 12.5 frames/s of 1920 samples",
        "32 (1 semantic), 32 by default",
        "32 entries x 8",
        "2 layers, 2 heads of 8, MLP 32, context 8 steps",
        "encoder_transformer",
        "mimi.downsample.conv.conv.conv.weight",
        "16 x 16 x 4",
    ):
        assert text in outcome.output, text


def test_inspect_refuses_what_is_broken(mimi, tiny_gguf: Path, tmp_path: Path) -> None:
    (tmp_path / "short.gguf").write_bytes(tiny_gguf.read_bytes()[:-100])
    outcome = mimi("inspect", tmp_path / "short.gguf")
    assert (outcome.status, outcome.output) == (1, "")
    assert outcome.errors.startswith("error[model_")


def test_metadata_cannot_style_the_terminal(mimi, tiny_gguf: Path, tmp_path: Path) -> None:
    data = tiny_gguf.read_bytes().replace(b"mimi-synth-tiny", b"[red]\x1b[31mhello")
    (tmp_path / "x.gguf").write_bytes(data)
    output = mimi("inspect", tmp_path / "x.gguf").output
    assert "[red] [31mhello" in output
    assert "\x1b" not in output


def test_inspect_to_a_pipe_is_plain_lines(mimi, tiny_gguf: Path, tmp_path: Path) -> None:
    folder = tmp_path / ("a" * 80) / ("b" * 80)
    folder.mkdir(parents=True)
    path = folder / "x.gguf"
    path.write_bytes(tiny_gguf.read_bytes())
    lines = mimi("inspect", path, "--tensors").output.splitlines()
    assert any(str(path) in line for line in lines)
    assert all(line == line.rstrip() for line in lines)


def test_a_budget(mimi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The bench sets it for all that it opens.
    monkeypatch.setenv("MIMI_RAM_BUDGET", "1GB")
    mimi("synth", "-o", tmp_path / "deep.safetensors", "--preset", "deep", "--layers", 6, "--dim", 32, "--heads", 2)
    model = tmp_path / "deep.gguf"
    assert mimi("convert", tmp_path / "deep.safetensors", "-o", model).status == 0
    whole = json.loads(mimi("inspect", model, "--ram-budget", "1GB", "--json").output)["window_plan"]
    budget = whole["full_bytes"] - 1
    plan = json.loads(mimi("inspect", model, "--ram-budget", budget, "--json").output)["window_plan"]
    assert plan["slots"] > 0 == whole["slots"]
    assert plan["memory_bytes"] <= budget
    assert "read every frame" in mimi("inspect", model, "--ram-budget", budget).output
    assert "nothing is read again" in mimi("inspect", model, "--ram-budget", "1GB").output
    outcome = mimi("inspect", model, "--ram-budget", "1KB")
    assert outcome.status == 2
    assert f"at least {whole['minimum_bytes']} bytes" in outcome.errors
    arguments = ("bench", "-m", model, "--batch", "1", "--seconds", 0.01, "--ram-budget", budget)
    windows = json.loads(mimi(*arguments, "--json").output)["windows"]
    assert windows[0]["bytes_read"] > 0
    assert "tensor window: " in mimi(*arguments).output
    assert mimi("bench", "--ram-budget", "a lot").status == 2
    assert mimi("synth", "-o", tmp_path / "x", "--preset", "tiny", "--layers", 3).status == 2
