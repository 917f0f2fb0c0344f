from __future__ import annotations

import io
import os
import subprocess
import sys
import wave
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile
import soxr

from codec_core.audio_file import BLOCK_SAMPLES, AudioReader, open_sound, open_wav
from codec_core.errors import AudioFileError, NonFiniteInputError
from codec_core.pcm import to_int16
from codec_core.wav_header import HEADER_BYTES, wav_header

Signal = Callable[[int, int], np.ndarray]


def read_all(path: Path) -> np.ndarray:
    with AudioReader(path) as reader:
        return np.concatenate([*reader.pcm(), np.zeros(0, np.float32)])


@pytest.mark.parametrize("rate", [8000, 24000, 44100, 96000])
@pytest.mark.parametrize("channels", [1, 2])
def test_wav_of_any_rate_is_resampled_as_a_whole(rate: int, channels: int, tmp_path: Path, speechlike: Signal) -> None:
    pcm = np.stack([speechlike(BLOCK_SAMPLES + 4001, seed) for seed in range(channels)], axis=1)
    path = tmp_path / "x.wav"
    soundfile.write(path, pcm, rate, subtype="FLOAT")
    with AudioReader(path) as reader:
        assert (reader.sample_rate_hz, reader.channels) == (rate, channels)
        found = np.concatenate(list(reader.pcm()))
        assert reader.expected_samples == len(found)
    mono = pcm[:, 0] if channels == 1 else (pcm[:, 0] + pcm[:, 1]) / np.float32(2)
    assert np.array_equal(found, mono if rate == 24000 else soxr.resample(mono, rate, 24000))


@pytest.mark.parametrize(("suffix", "tolerance"), [("flac", 1e-4), ("ogg", 0.1), ("mp3", 0.2), ("aiff", 1e-4), ("au", 1e-4)])
def test_other_formats(suffix: str, tolerance: float, tmp_path: Path, speechlike: Signal) -> None:
    pcm = speechlike(24_000, 1)
    path = tmp_path / f"x.{suffix}"
    soundfile.write(path, pcm, 24_000)
    found = read_all(path)
    assert abs(len(found) - len(pcm)) <= 1200
    if len(found) == len(pcm):
        assert np.abs(found - pcm).max() < tolerance


def test_an_empty_file_yields_nothing(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "x.wav", np.zeros(0, np.float32), 16000)
    assert read_all(tmp_path / "x.wav").size == 0


def test_standard_input(tmp_path: Path, speechlike: Signal) -> None:
    pcm = speechlike(9000, 2)
    stream = io.BytesIO()
    soundfile.write(stream, pcm, 24_000, format="FLAC")
    script = (
        "import sys, numpy\n"
        "from codec_core.audio_file import AudioReader\n"
        "with AudioReader('-') as reader:\n"
        "    sys.stdout.buffer.write(numpy.concatenate(list(reader.pcm())).tobytes())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], input=stream.getvalue(), capture_output=True, check=True, cwd=tmp_path
    )
    assert np.abs(np.frombuffer(done.stdout, np.float32) - pcm).max() < 1e-4


def test_a_float_file_with_nan_names_the_sample(tmp_path: Path) -> None:
    pcm = np.zeros(BLOCK_SAMPLES + 10, np.float32)
    pcm[BLOCK_SAMPLES + 3] = np.nan
    soundfile.write(tmp_path / "x.wav", pcm, 24_000, subtype="FLOAT")
    with pytest.raises(NonFiniteInputError, match=f"sample {BLOCK_SAMPLES + 3}, channel 0"):
        read_all(tmp_path / "x.wav")


def test_files_that_are_no_audio(tmp_path: Path) -> None:
    (tmp_path / "text.wav").write_text("<!DOCTYPE html>")
    (tmp_path / "empty.wav").write_bytes(b"")
    (tmp_path / "samples.raw").write_bytes(bytes(100))
    os.mkfifo(tmp_path / "pipe.wav")
    for name, message in (
        ("text.wav", "text.wav: found"),
        ("empty.wav", "empty.wav: found an empty file"),
        ("samples.raw", "samples.raw: found"),
        ("pipe.wav", "no regular file"),
        ("none.wav", "no such file"),
    ):
        with pytest.raises(AudioFileError) as caught:
            AudioReader(tmp_path / name)
        assert message in str(caught.value)


def test_a_rate_or_channel_count_that_is_not_taken(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "slow.wav", np.zeros(10), 1000)
    soundfile.write(tmp_path / "wide.wav", np.zeros((10, 65)), 24000)
    with pytest.raises(AudioFileError, match=r"slow\.wav: sample_rate_hz: found 1000"):
        AudioReader(tmp_path / "slow.wav")
    with pytest.raises(AudioFileError, match=r"wide\.wav: channels: found 65"):
        AudioReader(tmp_path / "wide.wav")


def test_writing_is_clamped_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.wav"
    with open_wav(path) as writer:
        writer.write(np.array([0, 0.5, 1.8, -1.8], np.float32))
        writer.write(np.zeros(0, np.float32))
        writer.write(np.array([-0.5], np.float32))
        assert writer.samples == 5
    with wave.open(str(path)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (24000, 1, 2)
        assert np.frombuffer(file.readframes(9), np.int16).tolist() == [0, 16384, 32767, -32768, -16384]
    assert [path.name for path in tmp_path.iterdir()] == ["x.wav"]


def test_a_failure_leaves_no_wav(tmp_path: Path) -> None:

    def fail_half_way() -> None:
        with open_wav(tmp_path / "x.wav") as writer:
            writer.write(np.zeros(100, np.float32))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert [path.name for path in tmp_path.iterdir()] == []


def test_only_wav_is_written(tmp_path: Path) -> None:
    with pytest.raises(AudioFileError, match=r"expected \.wav"), open_wav(tmp_path / "x.mp3"):
        pytest.fail("entered")
    with pytest.raises(AudioFileError, match="No such file"), open_wav(tmp_path / "no" / "x.wav"):
        pytest.fail("entered")


@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24", "FLOAT"])
@pytest.mark.parametrize("channels", [1, 2])
def test_a_wav_that_ends_early_says_so(subtype: str, channels: int, tmp_path: Path) -> None:
    path = tmp_path / "x.wav"
    soundfile.write(path, np.zeros((9000, channels)), 44100, subtype=subtype)
    whole = path.read_bytes()
    with AudioReader(path) as reader:
        list(reader.pcm())
        assert reader.missing is None
    path.write_bytes(whole[: len(whole) // 2])
    with AudioReader(path) as reader:
        list(reader.pcm())
        assert reader.missing is not None
        assert reader.missing.endswith("of 9000 samples")


def test_a_flac_that_ends_early_does_not_pass_for_whole(tmp_path: Path, rng: np.random.Generator) -> None:
    path = tmp_path / "x.flac"
    soundfile.write(path, rng.uniform(-0.5, 0.5, 90_000), 24_000)
    path.write_bytes(path.read_bytes()[:100_000])
    with AudioReader(path) as reader:
        try:
            list(reader.pcm())
        except AudioFileError:
            return
        assert reader.missing is not None


@pytest.mark.parametrize("size", [0, 0x7FFFFFFF, 0xFFFFFFFF])
def test_a_wav_written_to_a_pipe_is_not_taken_for_cut(size: int, tmp_path: Path) -> None:
    path = tmp_path / "x.wav"
    soundfile.write(path, np.zeros(9000), 24_000, subtype="PCM_16")
    data = bytearray(path.read_bytes())
    data[40:44] = size.to_bytes(4, "little")
    path.write_bytes(data)
    with AudioReader(path) as reader:
        list(reader.pcm())
        assert reader.missing is None


def test_the_system_says_why_a_file_cannot_be_written(tmp_path: Path) -> None:
    script = (
        "import numpy, resource, sys\n"
        "from codec_core.audio_file import open_wav\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "with open_wav(sys.argv[1]) as writer:\n"
        "    writer.write(numpy.zeros(200_000, numpy.float32))\n"
    )
    done = subprocess.run([sys.executable, "-c", script, "x.wav"], capture_output=True, check=False, cwd=tmp_path, text=True)
    assert "AudioFileError: x.wav: found File too large" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == []


@pytest.mark.parametrize("container", ["FLAC", "OGG"])
@pytest.mark.parametrize("samples", [1, 1920, 50_001])
def test_open_files_are_written_and_read_and_stay_open(container: str, samples: int, speechlike: Signal) -> None:
    pcm = 0.5 * speechlike(samples, 3)
    file = io.BytesIO()
    with open_sound(file, container) as writer:
        for piece in np.array_split(pcm, 3):
            writer.write(piece)
    file.seek(0)
    with AudioReader(file, "body") as reader:
        found = np.concatenate([*reader.pcm(), np.zeros(0, np.float32)])
        assert (reader.sample_rate_hz, reader.subject) == (24_000, "body")
    assert len(found) == samples
    if container == "FLAC":
        assert np.array_equal(to_int16(found), to_int16(pcm))
    elif samples > 1920:
        assert np.corrcoef(found, pcm)[0, 1] > 0.9
    assert not file.closed


def test_an_open_file_that_is_no_audio_is_named_as_the_caller_says() -> None:
    for data, found in ((b"", "an empty file"), (b"RIFF", "")):
        with pytest.raises(AudioFileError, match=f"^body: found {found}"):
            AudioReader(io.BytesIO(data), "body")


@pytest.mark.parametrize("samples", [0, 1, 4001])
def test_a_header_and_samples_are_the_file_that_is_written(samples: int, tmp_path: Path, speechlike: Signal) -> None:
    pcm = speechlike(samples, 5)
    with open_wav(tmp_path / "x.wav") as writer:
        writer.write(pcm)
    header = wav_header(samples, 24_000)
    assert len(header) == HEADER_BYTES
    assert header + to_int16(pcm).astype("<i2").tobytes() == (tmp_path / "x.wav").read_bytes()
