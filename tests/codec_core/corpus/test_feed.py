"""One source as frames."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import soundfile

from codec_core.audio_file import AudioReader
from codec_core.corpus.feed import PrefetchedFeed, SourceFeed
from codec_core.corpus.inputs import Source
from codec_core.errors import CodecError, InternalError

from .audio_files import BAD_KINDS, sound, write_bad


def frames_of(feed: SourceFeed) -> np.ndarray:
    return np.concatenate(list(feed.blocks()))


@pytest.mark.parametrize("channel", [None, 0, 1])
def test_frames_are_the_readers_samples_and_zeros(tmp_path: Path, channel: int | None):
    path = tmp_path / "x.flac"
    soundfile.write(path, sound(50_000, 2, 1), 16000)
    feed = SourceFeed(Source(str(path), channel=channel), 1920)
    with AudioReader(path, channel=channel) as reader:
        samples = np.concatenate(list(reader.pcm()))
    frames = frames_of(feed)
    assert frames.shape == (40, 1920)
    assert np.array_equal(frames.reshape(-1)[: len(samples)], samples)
    assert not frames.reshape(-1)[len(samples) :].any()
    facts = feed.facts
    assert facts.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (facts.rate_hz, facts.channels, facts.source_samples, facts.samples) == (16000, 2, 50_000, 75_000)


@pytest.mark.parametrize("kind", [kind for kind in BAD_KINDS if kind != "too loud"])
def test_what_is_bad_is_refused(tmp_path: Path, kind: str):
    write_bad(tmp_path / "x.wav", kind, 1)
    feed = SourceFeed(Source(str(tmp_path / "x.wav")), 1920)
    with pytest.raises(CodecError):
        frames_of(feed)
    with pytest.raises(InternalError):
        feed.facts  # noqa: B018


@pytest.mark.parametrize("name", ["none.wav", "", "bad\udcff.wav"])
def test_names_of_nothing(tmp_path: Path, name: str):
    with pytest.raises(CodecError):
        frames_of(SourceFeed(Source(str(tmp_path / name)), 1920))


def test_a_channel_the_file_lacks(tmp_path: Path):
    soundfile.write(tmp_path / "x.wav", sound(100, 1, 1), 24000)
    with pytest.raises(CodecError, match="a channel 1, counted from 0"):
        frames_of(SourceFeed(Source(str(tmp_path / "x.wav"), channel=1), 1920))


def test_reading_ahead_changes_nothing_and_carries_errors(tmp_path: Path):
    soundfile.write(tmp_path / "x.wav", sound(400_000, 1, 1), 24000)
    expected = frames_of(SourceFeed(Source(str(tmp_path / "x.wav")), 1920))
    with ThreadPoolExecutor(1) as pool:
        feed = PrefetchedFeed(SourceFeed(Source(str(tmp_path / "x.wav")), 1920), pool)
        blocks = []
        while (block := feed.take()) is not None:
            blocks.append(block)
        assert len(blocks) > 3
        assert np.array_equal(np.concatenate(blocks), expected)
        broken = PrefetchedFeed(SourceFeed(Source(str(tmp_path / "none.wav")), 1920), pool)
        with pytest.raises(CodecError, match="no such file"):
            broken.take()
