from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from codec_core.cli.compare import heat_strip
from codec_core.codes_file import CodesDocument, write_codes

LEVELS, FRAMES = 12, 30


@pytest.fixture
def codes(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 32, (LEVELS, FRAMES)).astype(np.int32)


@pytest.fixture
def other(codes: np.ndarray) -> np.ndarray:
    """Three codes differ: frame 20 level 9 first, then two of frame 25."""
    changed = codes.copy()
    changed[[9, 2, 10], [20, 25, 25]] ^= 1
    return changed


def write(path: Path, codes: np.ndarray) -> Path:
    if path.suffix in (".txt", ".log"):
        path.write_text("loading\n" + "".join(f"frame={i} codes={','.join(map(str, row))}\n" for i, row in enumerate(codes.T)))
    else:
        write_codes(path, CodesDocument(codes))
    return path


@pytest.mark.parametrize("suffix", ["npy", "mimi", "json", "safetensors", "txt", "log"])
def test_the_same_codes_in_any_format(mimi, tmp_path: Path, codes: np.ndarray, suffix: str) -> None:
    first, second = write(tmp_path / "a.npy", codes), write(tmp_path / f"b.{suffix}", codes)
    outcome = mimi("compare", first, second, "--require-token-exact", "--min-code-match", 1, "--min-prefix-match", 1)
    assert (outcome.status, outcome.errors) == (0, "")
    assert "no difference" in outcome.output
    assert outcome.output.count("passed   ") == 3


def test_a_difference_is_placed_and_drawn(mimi, tmp_path: Path, codes: np.ndarray, other: np.ndarray) -> None:
    outcome = mimi("compare", write(tmp_path / "a.npy", codes), write(tmp_path / "b.npy", other))
    assert outcome.status == 0
    assert f"codes, frame 20, level 9: expected {codes[9, 20]}, found {other[9, 20]} (3 of 360 differ)" in outcome.output
    assert "99.17 % of all, 99.58 % of the first 8 levels" in outcome.output
    strips = [line for line in outcome.output.splitlines() if line.strip().startswith("level ")]
    assert len(strips) == LEVELS
    assert "▁" in strips[9]
    assert "▁" not in strips[0]


@pytest.mark.parametrize(
    ("gate", "passes"),
    [
        (["--require-token-exact"], False),
        (["--min-code-match", "0.99"], True),
        (["--min-code-match", "0.995"], False),
        (["--min-prefix-match", "0.995"], True),
        (["--min-prefix-match", "1", "--prefix-levels", "2"], True),
        (["--min-prefix-match", "1", "--prefix-levels", "3"], False),
    ],
)
def test_gates(gate: list[str], passes: bool, *, mimi, tmp_path: Path, codes: np.ndarray, other: np.ndarray) -> None:
    files = write(tmp_path / "a.mimi", codes), write(tmp_path / "b.json", other)
    outcome = mimi("compare", *files, *gate)
    assert outcome.status == (0 if passes else 1)
    assert ("passed   " if passes else "FAILED   ") in outcome.output
    report = json.loads(mimi("compare", *files, *gate, "--json").output)
    assert report["passed"] is passes
    assert report["gates"][0]["passed"] is passes


def test_json(mimi, tmp_path: Path, codes: np.ndarray, other: np.ndarray) -> None:
    report = json.loads(mimi("compare", write(tmp_path / "a.npy", codes), write(tmp_path / "b.npy", other), "--json").output)
    found = report["codes"]
    assert report["passed"] is True
    assert found["shapes"] == [[LEVELS, FRAMES]] * 2
    assert found["code_match"] == pytest.approx(357 / 360)
    assert found["level_match"][9] == pytest.approx(29 / 30)
    assert found["frame_match"][25] == pytest.approx(10 / 12)
    assert (found["first_difference"]["frame"], found["first_difference"]["level"]) == (20, 9)
    assert "sound" not in report


def test_other_shapes(mimi, tmp_path: Path, codes: np.ndarray) -> None:
    """What both have is compared; the shape is the difference."""
    files = write(tmp_path / "a.npy", codes), write(tmp_path / "b.npy", codes[:8, :20])
    report = json.loads(mimi("compare", *files, "--json").output)["codes"]
    assert (report["token_exact"], report["code_match"]) == (False, 1.0)
    assert report["first_difference"]["expected"] == "shape [12, 30]"
    assert mimi("compare", *files, "--require-token-exact").status == 1
    assert "12 levels x 30 frames and 8 levels x 20 frames" in mimi("compare", *files).output


def test_decoded_sound(mimi, tmp_path: Path, codes: np.ndarray, other: np.ndarray, tiny_gguf: Path) -> None:
    files = write(tmp_path / "a.npy", codes), write(tmp_path / "b.npy", other)
    report = json.loads(mimi("compare", *files, "-m", tiny_gguf, "--json").output)["sound"]
    assert report["expected_samples"] == report["found_samples"] == FRAMES * 1920
    assert 20 * 1920 <= report["first_difference_sample"] < 21 * 1920
    psnr_db = report["psnr_db"]
    for gate, status in ((psnr_db - 0.1, 0), (psnr_db + 0.1, 1)):
        assert mimi("compare", *files, "-m", tiny_gguf, "--min-decode-psnr-db", gate).status == status
    same = mimi("compare", files[0], files[0], "-m", tiny_gguf, "--min-decode-psnr-db", 200)
    assert same.status == 0
    assert "57600 samples, bit-identical\n         PSNR inf dB, SNR inf dB\n" in same.output


def test_audio_files(mimi, tmp_path: Path, rng: np.random.Generator) -> None:
    sound = rng.uniform(-0.5, 0.5, 5000)
    soundfile.write(tmp_path / "a.wav", sound, 24000, subtype="FLOAT")
    soundfile.write(tmp_path / "b.wav", sound[:4800] + 0.001, 24000, subtype="FLOAT")
    files = tmp_path / "a.wav", tmp_path / "b.wav"
    report = json.loads(mimi("compare", *files, "--json").output)["sound"]
    assert report["psnr_db"] == pytest.approx(60, abs=0.01)
    assert report["snr_db"] == pytest.approx(60 - 10 * np.log10(12), abs=0.2)
    assert (report["bit_exact"], report["first_difference_sample"]) == (False, 0)
    assert mimi("compare", *files, "--min-decode-psnr-db", 59.9).status == 0
    assert mimi("compare", *files, "--min-decode-psnr-db", 60.1).status == 1
    assert "bit-identical" in mimi("compare", files[0], files[0]).output


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["{codes}", "{none}"], 1, "error[codes_file]: "),
        (["{codes}", "{wav}"], 1, "error[codes_file]: "),
        (["{codes}", "{empty}"], 1, "error[codes_file]: "),
        (["{wav}", "{wav}", "--require-token-exact"], 2, "error[setting]: --require-token-exact: "),
        (["{codes}", "{codes}", "--min-decode-psnr-db", "30"], 2, "error[setting]: "),
        (["{codes}", "{codes}", "--model", "no-such-model"], 1, "error[model_access]: "),
        (["{codes}"], 2, ""),
        (["{codes}", "{codes}", "--min-code-match", "1.1"], 2, ""),
    ],
)
def test_refusals(arguments: list[str], status: int, message: str, *, mimi, tmp_path: Path, codes: np.ndarray) -> None:
    soundfile.write(tmp_path / "x.wav", np.zeros(10), 24000)
    (tmp_path / "x.txt").write_text("nothing of the kind\n")
    places = {
        "codes": write(tmp_path / "x.npy", codes),
        "none": tmp_path / "none.npy",
        "wav": tmp_path / "x.wav",
        "empty": tmp_path / "x.txt",
    }
    outcome = mimi("compare", *(argument.format(**places) for argument in arguments))
    assert outcome.status == status
    assert outcome.errors.startswith(message)
    assert outcome.output == ""


def test_heat_strip_shows_every_part_of_a_long_clip() -> None:
    matches = np.ones(6000, bool)
    matches[5900:] = False
    strip = heat_strip(matches)
    assert strip.plain == "█" * 59 + "▁"
    assert [str(span.style) for span in strip.spans[-2:]] == ["green", "red"]
    assert heat_strip(np.ones(3, bool)).plain == "███"


def test_nothing_in_common_is_no_match(mimi, tmp_path: Path, codes: np.ndarray) -> None:
    files = write(tmp_path / "a.npy", codes[:, :0]), write(tmp_path / "b.npy", codes)
    outcome = mimi("compare", *files, "--require-token-exact", "--min-code-match", 0.5)
    assert outcome.status == 1
    assert "match    no code in common\n" in outcome.output
    assert "FAILED   not token exact, which is required\n" in outcome.output
    assert "FAILED   code match 0, at least 0.5 required\n" in outcome.output
    assert mimi("compare", files[0], files[0], "--require-token-exact", "--min-code-match", 1).status == 0
