from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
import soundfile

from codec_core.cli.stream_source import open_source, stoppable
from codec_core.client import StreamSettings
from codec_core.codes_file import CodesDocument, write_codes
from codec_core.errors import AudioFileError, SettingError, UnavailableError


async def everything(chunks) -> list[np.ndarray]:
    return [chunk async for chunk in chunks]


async def test_a_recording_comes_as_24_khz_in_short_pieces(tmp_path: Path):
    soundfile.write(tmp_path / "x.flac", np.zeros((44_100, 2)), 44_100)
    source = open_source(str(tmp_path / "x.flac"), 24_000, 4, echo=False)
    assert (source.settings.mode, source.settings.levels, source.settings.sample_rate_hz) == ("encode", 4, 24_000)
    pieces = await everything(source.chunks)
    assert sum(map(len, pieces)) == 24_000
    assert max(map(len, pieces)) <= 1920
    assert {piece.dtype for piece in pieces} == {np.dtype(np.float32)}


async def test_codes_say_their_own_levels_and_length(tmp_path: Path):
    codes = np.arange(12, dtype=np.int32).reshape(3, 4)
    write_codes(tmp_path / "x.json", CodesDocument(codes, 7000))
    source = open_source(str(tmp_path / "x.json"), 24_000, None, echo=True)
    assert (source.settings.mode, source.settings.levels, source.samples) == ("decode", 3, 7000)
    assert np.array_equal(np.concatenate(await everything(source.chunks), axis=1), codes)
    with pytest.raises(SettingError, match="levels: found 2, expected 3"):
        open_source(str(tmp_path / "x.json"), 24_000, 2, echo=True)


def test_sound_for_sound_asks_for_its_codes_too(tmp_path: Path):
    soundfile.write(tmp_path / "x.wav", np.zeros(10), 24_000)
    settings = open_source(str(tmp_path / "x.wav"), 24_000, None, echo=True).settings
    assert (settings.mode, settings.echo_codes) == ("echo", True)


def test_a_language_model_hears_sound(tmp_path: Path):
    soundfile.write(tmp_path / "x.wav", np.zeros(10), 24_000)
    wanted = StreamSettings("talk", seed=7)
    settings = open_source(str(tmp_path / "x.wav"), 24_000, None, echo=True, talk=wanted).settings
    assert (settings.mode, settings.seed, settings.sample_format) == ("talk", 7, "f32le")
    with pytest.raises(SettingError, match="hears no codes"):
        open_source("x.json", 24_000, None, echo=False, talk=wanted)


def test_what_is_no_sound_is_refused():
    with pytest.raises(AudioFileError):
        open_source("none.wav", 24_000, None, echo=False)


async def test_a_microphone_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "sounddevice", None)
    with pytest.raises(UnavailableError, match="sounddevice"):
        await everything(open_source("mic", 24_000, None, echo=False).chunks)


async def test_a_source_that_waits_can_be_stopped():
    async def endless():
        yield np.zeros(1)
        await asyncio.Event().wait()
        yield np.ones(1)

    stop = asyncio.Event()
    asyncio.get_running_loop().call_later(0.05, stop.set)
    assert len(await everything(stoppable(endless(), stop))) == 1
    assert await everything(stoppable(endless(), stop)) == []
