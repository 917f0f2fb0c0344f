from __future__ import annotations

import json
from pathlib import Path

import pytest
import soundfile

from codec_core.verify.vectors import PACKAGED


def test_a_line_for_every_check(mimi) -> None:
    outcome = mimi("verify", "--quick")
    assert (outcome.status, outcome.errors) == (0, "")
    lines = outcome.output.splitlines()
    assert lines[0].startswith("mimi ")
    assert sum("passed  " in line for line in lines) >= 20
    assert "default model, kyutai vectors" in lines
    assert "all passed" in lines[-1]


def test_json(mimi, tiny_gguf: Path) -> None:
    outcome = mimi("verify", "--quick", "--json", "-m", tiny_gguf, "--numerics", "kyutai")
    report = json.loads(outcome.output)
    assert outcome.status == 0
    assert report["passed"] is True
    assert report["numerics"] == ["kyutai"]
    assert report["instruction_sets"][-1] == "scalar"
    assert {"group", "name", "passed", "seconds", "detail", "difference"} == set(report["checks"][0])


def test_failures(mimi, tiny_gguf: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(tiny_gguf.read_bytes()[:5000])
    outcome = mimi("verify", "--quick", "-m", broken)
    assert outcome.status == 1
    assert "FAILED" in outcome.output
    assert "model_format: " in outcome.output
    assert json.loads(mimi("verify", "--quick", "--json", "-m", broken).output)["passed"] is False
    assert mimi("verify", "--numerics", "exact").status == 2
    assert mimi("verify", "--vectors", tmp_path).status == 2


def test_drift(mimi, wide_checkpoint: Path, quantised_model_path: Path, tmp_path: Path, speechlike) -> None:
    soundfile.write(tmp_path / "x.wav", speechlike(24000, 5), 24000)
    command = ("verify", "-m", quantised_model_path, "--drift", wide_checkpoint, tmp_path / "x.wav")
    outcome = mimi(*command, "--plot", tmp_path / "card.png")
    assert outcome.status == 0
    lines = outcome.output.splitlines()
    assert lines[0].startswith("model    mimi-synth-wide, q8_0, kyutai numerics: ")
    assert lines[1].startswith("against  mimi-synth-wide, f32, kyutai numerics: ")
    assert sum(line[:3].strip().isdigit() for line in lines) == 32
    assert lines[-1].startswith("x.wav ")
    assert (tmp_path / "card.png").read_bytes().startswith(b"\x89PNG")
    card = json.loads(mimi(*command, "--json", "--numerics", "ggml").output)
    assert card["model"]["numerics"] == card["reference"]["numerics"] == "ggml"
    assert len(card["level_match"]) == 32
    assert card["signals"][0]["snr_db"] > 20


def test_what_drift_needs(mimi, tmp_path: Path) -> None:
    for arguments in (("x.wav",), ("--plot", tmp_path / "x.png"), ("--drift", "default")):
        outcome = mimi("verify", *arguments)
        assert outcome.status == 2
        assert outcome.errors.startswith("error[setting]: ")


def test_quality(mimi) -> None:
    for package in ("pystoi", "pesq", "pocketsphinx"):
        pytest.importorskip(package, reason="wants the extra quality")
    speech = PACKAGED / "default" / "signals" / "sample_2.wav"
    command = ("verify", "--quality", "--levels", "4,32", "--recognise", speech, speech)
    outcome = mimi(*command)
    assert outcome.status == 0
    lines = outcome.output.splitlines()
    assert lines[0].startswith("mimi-mini, ")
    assert [line.split()[0] for line in lines[3:5]] == ["4", "32"]
    assert lines[-1].split()[0] == "signals"
    card = json.loads(mimi(*command, "--json").output)
    assert [level["levels"] for level in card["levels"]] == [4, 32]


def test_what_quality_needs(mimi) -> None:
    for arguments in (("--levels", "8"), ("--recognise", "x.wav"), ("--quality", "--levels", "few", "x.wav")):
        outcome = mimi("verify", *arguments)
        assert outcome.status == 2
        assert outcome.errors.startswith("error[setting]: ")
