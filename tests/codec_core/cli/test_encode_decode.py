"""``mimi encode`` and ``mimi decode`` on the tiny model, against the library."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
import wave
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile

from codec_core import CodecModel
from codec_core.codes_file import read_codes
from codec_core.pcm import to_float32, to_int16

SAMPLES = 1920 * 5 + 700


@pytest.fixture
def recording(tmp_path: Path, speechlike: Callable[[int, int], np.ndarray]) -> Path:
    path = tmp_path / "voice.wav"
    soundfile.write(path, to_int16(speechlike(SAMPLES, 1)), 24000)
    return path


@pytest.fixture
def expected_codes(recording: Path, tiny_gguf: Path) -> np.ndarray:
    pcm, _ = soundfile.read(recording, dtype="int16")
    session = CodecModel.open(tiny_gguf).encoder(8)
    return np.concatenate([session.push(to_float32(pcm)), session.flush()], axis=1)


def read_wav(path: Path) -> np.ndarray:
    with wave.open(str(path)) as file:
        assert (file.getframerate(), file.getnchannels()) == (24000, 1)
        return np.frombuffer(file.readframes(file.getnframes()), np.int16)


@pytest.mark.parametrize("suffix", ["npy", "mimi", "json", "safetensors"])
def test_there_and_back(
    suffix: str, *, mimi, recording: Path, expected_codes: np.ndarray, tiny_gguf: Path, tmp_path: Path
) -> None:
    codes, sound = tmp_path / f"codes.{suffix}", tmp_path / "back.wav"
    outcome = mimi("encode", recording, "-o", codes, "--levels", 8, "--model", tiny_gguf)
    assert (outcome.status, outcome.output, outcome.errors) == (0, f"{codes}: 8 levels x 6 frames, 0.43 s\n", "")
    document = read_codes(codes)
    assert np.array_equal(document.codes, expected_codes)
    assert mimi("decode", codes, "-o", sound, "-m", tiny_gguf).status == 0
    exact = suffix in ("json", "safetensors")
    decoded = to_int16(CodecModel.open(tiny_gguf).decoder(8).push(expected_codes))
    assert np.array_equal(read_wav(sound), decoded[: SAMPLES if exact else 6 * 1920])
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["voice.wav", codes.name, "back.wav"])


def test_json_and_provenance(mimi, recording: Path, tiny_gguf: Path, tmp_path: Path) -> None:
    codes = tmp_path / "codes.json"
    outcome = json.loads(mimi("encode", recording, "-o", codes, "-m", tiny_gguf, "--json").output)
    info = CodecModel.open(tiny_gguf).info
    assert (outcome["levels"], outcome["frames"], outcome["samples"]) == (info.default_levels, 6, SAMPLES)
    provenance = read_codes(codes).provenance
    assert provenance == outcome["provenance"]
    assert (provenance["model_sha256"], provenance["numerics"]) == (info.sha256, "kyutai")
    back = json.loads(mimi("decode", codes, "-o", tmp_path / "x.wav", "-m", tiny_gguf, "--json").output)
    assert back["samples"] == SAMPLES


def test_codes_of_another_model_are_decoded_with_a_warning(
    mimi, recording: Path, tiny_gguf: Path, tiny_f16_gguf: Path, tmp_path: Path
) -> None:
    codes = tmp_path / "codes.json"
    mimi("encode", recording, "-o", codes, "-m", tiny_gguf)
    outcome = mimi("decode", codes, "-o", tmp_path / "x.wav", "-m", tiny_f16_gguf)
    assert outcome.status == 0
    assert outcome.errors.startswith("warning: these codes were made by mimi-synth-tiny (")


def test_rate_and_channels_of_the_file_do_not_matter(mimi, tmp_path: Path, tiny_gguf: Path) -> None:
    soundfile.write(tmp_path / "x.flac", np.zeros((44100, 2)), 44100)
    assert mimi("encode", tmp_path / "x.flac", "-o", tmp_path / "x.json", "-m", tiny_gguf).status == 0
    document = read_codes(tmp_path / "x.json")
    assert (document.samples, document.frames) == (24000, 13)


def test_an_empty_file_has_no_frames(mimi, tmp_path: Path, tiny_gguf: Path) -> None:
    soundfile.write(tmp_path / "x.wav", np.zeros(0), 24000)
    outcome = mimi("encode", tmp_path / "x.wav", "-o", tmp_path / "x.json", "-m", tiny_gguf)
    warning = f"{tmp_path / 'x.wav'}: the audio has no samples: there is nothing to encode"
    assert (outcome.status, outcome.errors) == (0, f"warning: {warning}\n")
    assert read_codes(tmp_path / "x.json").frames == 0
    assert mimi("decode", tmp_path / "x.json", "-o", tmp_path / "y.wav", "-m", tiny_gguf).status == 0
    assert read_wav(tmp_path / "y.wav").size == 0


def test_standard_input(mimi_process, recording: Path, expected_codes: np.ndarray, tiny_gguf: Path, tmp_path: Path) -> None:
    process = mimi_process("encode", "-", "-o", tmp_path / "x.npy", "-k", 8, "-m", tiny_gguf)
    _, errors = process.communicate(recording.read_bytes(), timeout=60)
    assert process.returncode == 0, errors
    assert np.array_equal(np.load(io.BytesIO((tmp_path / "x.npy").read_bytes())), expected_codes)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["encode", "{none}", "-o", "{out}.npy"], 1, "error[audio_file]: "),
        (["encode", "{voice}", "-o", "{out}.txt"], 1, "error[codes_file]: "),
        (["encode", "{voice}", "-o", "{out}.npy", "-m", "no-such-model"], 1, "error[model_access]: "),
        (["encode", "{voice}", "-o", "{out}.npy", "-m", "{voice}"], 1, "error[model_format]: "),
        (["encode", "{voice}", "-o", "{out}.npy", "-m", "{model}", "--levels", "33"], 2, "error[setting]: "),
        (["encode", "{voice}", "-o", "{out}.npy", "-m", "{model}", "--numerics", "exact"], 2, "error[setting]: "),
        (["decode", "{voice}", "-o", "{out}.wav"], 1, "error[codes_file]: "),
        (["decode", "{codes}", "-o", "{out}.mp3", "-m", "{model}"], 1, "error[audio_file]: "),
        (["decode", "{bad}", "-o", "{out}.wav", "-m", "{model}"], 1, "error[code_range]: "),
        (["decode", "{wide}", "-o", "{out}.wav", "-m", "{model}"], 1, "error[codes_file]: "),
        (["decode", "{none}.npy", "-o", "{out}.wav"], 1, "error[codes_file]: "),
        (["decode", "-", "-o", "{out}.wav"], 2, "error[setting]: "),
        (["decode", "{codes}", "-o", "{out}.wav", "--format", "npy"], 2, "error[setting]: "),
        (["encode", "{voice}", "-o", "{link}"], 1, "error[codes_file]: "),
        (["decode", "{codes}", "-o", "{codes_link}"], 1, "error[audio_file]: "),
    ],
)
def test_failures_say_why_and_leave_no_output(
    arguments: list[str], status: int, message: str, *, mimi, recording: Path, tiny_gguf: Path, tmp_path: Path
) -> None:
    np.save(tmp_path / "codes.npy", np.zeros((4, 2), np.int16))
    np.save(tmp_path / "bad.npy", np.full((4, 2), 32, np.int16))
    np.save(tmp_path / "wide.npy", np.zeros((33, 2), np.int16))
    (tmp_path / "link.npy").symlink_to(recording)
    (tmp_path / "link.wav").hardlink_to(tmp_path / "codes.npy")
    before = sorted(path.name for path in tmp_path.iterdir())
    places = {
        "none": tmp_path / "none.wav",
        "voice": recording,
        "model": tiny_gguf,
        "out": tmp_path / "out",
        "link": tmp_path / "link.npy",
        "codes_link": tmp_path / "link.wav",
        **{name: tmp_path / f"{name}.npy" for name in ("codes", "bad", "wide")},
    }
    outcome = mimi(*(argument.format(**places) for argument in arguments))
    assert outcome.errors.startswith(message)
    assert (outcome.status, outcome.output, outcome.errors.count("\n")) == (status, "", 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_outputs_are_replaced(mimi, recording: Path, tiny_gguf: Path, tmp_path: Path) -> None:
    for _ in range(2):
        assert mimi("encode", recording, "-o", tmp_path / "x.npy", "-m", tiny_gguf).status == 0
        assert mimi("decode", tmp_path / "x.npy", "-o", tmp_path / "x.wav", "-m", tiny_gguf).status == 0


def test_a_file_that_ends_early_is_encoded_with_a_warning(mimi, recording: Path, tiny_gguf: Path, tmp_path: Path) -> None:
    recording.write_bytes(recording.read_bytes()[: 44 + 2 * 5000])
    outcome = mimi("encode", recording, "-o", tmp_path / "x.json", "-m", tiny_gguf, "--json")
    warning = f"{recording}: the file ends early: 5000 of {SAMPLES} samples"
    assert (outcome.status, outcome.errors) == (0, f"warning: {warning}\n")
    assert json.loads(outcome.output)["warnings"] == [warning]
    assert read_codes(tmp_path / "x.json").samples == 5000


@pytest.mark.parametrize("suffix", ["npy", "mimi", "json", "safetensors"])
def test_codes_on_standard_input(suffix: str, *, mimi, mimi_process, recording: Path, tiny_gguf: Path, tmp_path: Path) -> None:
    codes = tmp_path / f"x.{suffix}"
    mimi("encode", recording, "-o", codes, "-m", tiny_gguf)
    mimi("decode", codes, "-o", tmp_path / "expected.wav", "-m", tiny_gguf)
    process = mimi_process("decode", "-", "--format", suffix, "-o", tmp_path / "found.wav", "-m", tiny_gguf)
    _, errors = process.communicate(codes.read_bytes(), timeout=60)
    assert process.returncode == 0, errors
    assert (tmp_path / "found.wav").read_bytes() == (tmp_path / "expected.wav").read_bytes()


def test_transposed_codes_are_recognised(mimi, tiny_gguf: Path, tmp_path: Path) -> None:
    codes = tmp_path / "x.npy"
    np.save(codes, np.zeros((62, 8), np.int16))
    for arguments in (("decode", codes, "-o", tmp_path / "x.wav"), ("compare", codes, codes)):
        outcome = mimi(*arguments, "-m", tiny_gguf)
        assert outcome.status == 1
        assert outcome.errors.startswith(f"error[codes_file]: {codes}: levels: found 62, expected 1 .. 32")
        assert "transposed" in outcome.errors


@pytest.mark.parametrize("command", [["decode", "x.npy", "-o", "x.wav"], ["convert", "x.npy", "-o", "x.gguf"]])
def test_an_unreadable_file_is_one_line(
    command: list[str], *, mimi, monkeypatch: pytest.MonkeyPatch, unreadable_folder: Path
) -> None:
    monkeypatch.chdir(unreadable_folder)
    (unreadable_folder / "x.npy").touch()
    (unreadable_folder / "x.npy").chmod(0)
    with without_privileges():
        outcome = mimi(*command)
    assert outcome.status == 1
    assert outcome.errors.startswith("error[")
    assert "Permission denied" in outcome.errors


@pytest.fixture
def unreadable_folder() -> Iterator[Path]:
    """A folder anyone may enter; the ones pytest makes are closed to others."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


@contextlib.contextmanager
def without_privileges() -> Iterator[None]:
    """Be nobody for a while where the tests run as root, whom no permission stops."""
    before = os.getresuid()
    if before[1] == 0:
        os.setresuid(65534, 65534, 0)
    try:
        yield
    finally:
        os.setresuid(*before)


def test_a_budget_changes_no_bit(mimi, recording: Path, tmp_path: Path) -> None:
    for name, options in (("whole", ()), ("window", ("--ram-budget", "13MB"))):
        codes = tmp_path / f"{name}.npy"
        assert mimi("encode", recording, "-o", codes, *options).status == 0
        assert mimi("decode", codes, "-o", tmp_path / f"{name}.wav", *options).status == 0
    assert (tmp_path / "whole.npy").read_bytes() == (tmp_path / "window.npy").read_bytes()
    assert (tmp_path / "whole.wav").read_bytes() == (tmp_path / "window.wav").read_bytes()
