"""``mimi stream`` against a real service: its files are those of ``mimi encode`` and ``mimi decode``."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile

from codec_core.clip import decode_clip, encode_clip
from codec_core.codes_file import CodesDocument, read_codes, write_codes
from codec_core.pcm import to_int16

LEVELS = 4
MIMI = str(Path(sys.executable).with_name("mimi"))


@pytest.fixture
def recording(tmp_path: Path, speech: np.ndarray) -> Path:
    path = tmp_path / "voice.wav"
    soundfile.write(path, speech, 24_000)
    return path


@pytest.fixture
def stream_to(service, tmp_path: Path):
    """stream_to(*arguments) runs ``mimi stream`` to the service."""

    def run(*arguments: object, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        command = [MIMI, "stream", *map(str, arguments), "--url", service.url]
        return subprocess.run(command, input=stdin, capture_output=True, cwd=tmp_path, timeout=60, check=False)

    return run


def test_a_recording_becomes_the_codes_that_encode_makes(stream_to, recording, tiny_model, speech, tmp_path):
    done = stream_to(recording, "-k", LEVELS, "-o", "x.safetensors", "--json")
    assert done.returncode == 0, done.stderr
    document = read_codes(tmp_path / "x.safetensors")
    assert np.array_equal(document.codes, encode_clip(tiny_model, speech, LEVELS))
    assert document.samples == len(speech)
    assert document.provenance["model_sha256"] == tiny_model.info.sha256
    told = json.loads(done.stdout)
    assert (told["mode"], told["levels"], told["samples"], told["resumes"]) == ("encode", LEVELS, len(speech), 0)
    assert done.stderr == b""


def test_lines_where_there_is_no_output(stream_to, recording, tiny_model, speech):
    done = stream_to(recording, "-k", LEVELS)
    lines = [list(map(int, line.split())) for line in done.stdout.decode().splitlines()]
    expected = encode_clip(tiny_model, speech, LEVELS)
    assert [line[2:] for line in lines] == expected.T.tolist()
    assert [line[:2] for line in lines] == [[index, 1920 * index] for index in range(len(lines))]
    assert done.stderr.decode().splitlines()[-1].startswith("encode: 4 levels x 38 frames, 3.03 s; latency ")


def test_a_wav_output_is_the_sound_of_the_codes(stream_to, recording, tiny_model, speech, tmp_path):
    assert stream_to(recording, "-k", LEVELS, "-o", "x.wav").returncode == 0
    sound, _ = soundfile.read(tmp_path / "x.wav", dtype="int16")
    expected = to_int16(decode_clip(tiny_model, encode_clip(tiny_model, speech, LEVELS)))
    assert np.array_equal(sound, expected[: len(speech)])


@pytest.mark.parametrize("form", ["opus", "opus-packets"])
def test_opus_on_the_way_keeps_the_length(form, *, stream_to, recording, speech, tmp_path):
    done = stream_to(recording, "-k", LEVELS, "--format", form, "-o", "x.wav", "--json")
    assert done.returncode == 0, done.stderr
    samples = json.loads(done.stdout)["samples"]
    # Packets by themselves cannot say where in the last of them the sound ends.
    assert samples == len(speech) if form == "opus" else 0 <= samples - len(speech) < 1920
    assert soundfile.info(tmp_path / "x.wav").frames == samples


def test_codes_become_sound(stream_to, tiny_model, speech, tmp_path):
    codes = encode_clip(tiny_model, speech, LEVELS)
    write_codes(tmp_path / "x.json", CodesDocument(codes, len(speech)))
    assert stream_to("x.json", "-o", "x.wav").returncode == 0
    sound, _ = soundfile.read(tmp_path / "x.wav", dtype="int16")
    assert np.array_equal(sound, to_int16(decode_clip(tiny_model, codes))[: len(speech)])


@pytest.mark.parametrize("by", ["pipe", "file"])
def test_raw_samples_on_standard_input(by, *, service, stream_to, tiny_model, speech, tmp_path):
    raw = speech.tobytes() + b"\0"
    if by == "pipe":
        done = stream_to("-", "-k", LEVELS, "-o", "x.npy", stdin=raw)
    else:
        (tmp_path / "raw").write_bytes(raw)
        command = [MIMI, "stream", "-", "-k", str(LEVELS), "-o", "x.npy", "--url", service.url]
        with (tmp_path / "raw").open("rb") as file:
            done = subprocess.run(command, stdin=file, capture_output=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert np.array_equal(np.load(tmp_path / "x.npy"), encode_clip(tiny_model, speech, LEVELS))


def test_ctrl_c_ends_the_input_and_writes_what_was_sent(service, recording, tiny_model, speech, tmp_path):
    command = [MIMI, "stream", str(recording), "--paced", "-k", str(LEVELS), "-o", "x.npy", "--url", service.url]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, cwd=tmp_path)
    assert process.stderr is not None
    assert process.stderr.readline().startswith(b"streaming: 1 s, ")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 0, errors
    codes = np.load(tmp_path / "x.npy")
    assert 8 <= codes.shape[1] < 38
    assert np.array_equal(codes[:, :-1], encode_clip(tiny_model, speech, LEVELS)[:, : codes.shape[1] - 1])


def test_a_terminal_gets_a_live_view(service, recording, tmp_path):
    ours, theirs = pty.openpty()
    command = [MIMI, "stream", str(recording), "--paced", "--seconds", "1", "-o", "x.npy", "--url", service.url]
    environment = os.environ | {"COLUMNS": "110", "LINES": "40", "TERM": "xterm"}
    process = subprocess.Popen(command, stderr=theirs, stdout=subprocess.PIPE, cwd=tmp_path, env=environment)
    os.close(theirs)
    seen = b""
    deadline_s = time.monotonic() + 60
    while time.monotonic() < deadline_s:
        try:
            piece = os.read(ours, 4096)
        except OSError:
            break
        seen += piece
        if not piece:
            break
    os.close(ours)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    shown = seen.decode()
    for what in ("level", "dBFS", "codes", "latency", "unanswered", "streaming", "voice.wav -> ws://"):
        assert what in shown, what
    assert output.startswith(b"x.npy: ")


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["none.wav"], 1, "error[audio_file]: none.wav"),
        (["voice.wav", "-o", "x.txt"], 1, "error[codes_file]: "),
        (["voice.wav", "-o", "voice.wav"], 1, "error[audio_file]: "),
        (["voice.wav", "-k", "33"], 2, "error[setting]: levels: found 33"),
        (["codes.npy", "-k", "3", "-o", "x.wav"], 2, "error[setting]: levels: found 3"),
        (["codes.npy", "-o", "x.npy"], 2, "error[setting]: output"),
        (["voice.wav", "--format", "mp3"], 2, "error[setting]: sample_format: found 'mp3'"),
        (["voice.wav", "--url", "nowhere"], 2, "error[setting]: url"),
        (["voice.wav", "--url", "ws://127.0.0.1:1"], 1, "error[unavailable]: ws://127.0.0.1:1"),
    ],
)
def test_failures_say_why_and_leave_no_output(arguments, status, message, *, stream_to, recording, tmp_path):
    assert recording.name == "voice.wav"
    np.save(tmp_path / "codes.npy", np.zeros((4, 2), np.int16))
    before = sorted(path.name for path in tmp_path.iterdir())
    url_is_given = "--url" in arguments
    done = (
        subprocess.run([MIMI, "stream", *arguments], capture_output=True, cwd=tmp_path, check=False)
        if url_is_given
        else stream_to(*arguments)
    )
    assert done.returncode == status
    assert done.stderr.decode().startswith(message)
    assert done.stderr.count(b"\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == before
