from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from codec_core.cli.stream_sink import Told, open_sink
from codec_core.client import Frame
from codec_core.codes_file import read_codes
from codec_core.errors import CodesFileError

MODEL = {"model": "m", "numerics": "kyutai"}


def test_codes_are_written_with_their_true_length(tmp_path: Path):
    with open_sink(tmp_path / "x.json", lines=False) as sink:
        for index in range(3):
            sink.take(Frame(index, 1920 * index, codes=np.array([index, 5], np.int32)))
        sink.take(Frame(3, 0, pcm=np.zeros(1920, np.float32)))
        sink.finish(5000, MODEL)
    document = read_codes(tmp_path / "x.json")
    assert document.codes.tolist() == [[0, 1, 2], [5, 5, 5]]
    assert (document.samples, document.provenance) == (5000, MODEL)


def test_sound_is_cut_to_its_true_length(tmp_path: Path):
    with open_sink(tmp_path / "x.wav", lines=False) as sink:
        for index in range(3):
            sink.take(Frame(index, 0, pcm=np.full(1920, 0.25, np.float32)))
            sink.take(Frame(index, 0, codes=np.zeros(2, np.int32)))
        sink.finish(5000, MODEL)
    sound, rate = soundfile.read(tmp_path / "x.wav", dtype="int16")
    assert (len(sound), rate, set(sound.tolist())) == (5000, 24_000, {8192})


def test_without_an_output_codes_are_lines(capsys: pytest.CaptureFixture[str]):
    for lines in (True, False):
        with open_sink(None, lines=lines) as sink:
            sink.take(Frame(7, 13_440, codes=np.array([1, 2, 3], np.int32)))
            sink.take(Frame(8, 13_440, pcm=np.zeros(4, np.float32)))
            sink.finish(1, MODEL)
    assert capsys.readouterr().out == "7 13440 1 2 3\n"


@pytest.mark.parametrize("told", [True, False])
def test_text_is_told_as_it_comes(told: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with open_sink(tmp_path / "x.wav", lines=False) as inner:
        sink = Told(inner, told=told)
        for index, text in enumerate((" he", "", "llo", " you")):
            sink.take(Frame(2 * index, 0, token=5, text=text))
            sink.take(Frame(2 * index + 1, 0, pcm=np.zeros(1920, np.float32)))
        sink.finish(4 * 1920, MODEL)
    assert capsys.readouterr().out == "hello you\n" * told
    assert sink.text == "hello you"
    assert soundfile.info(tmp_path / "x.wav").frames == 4 * 1920


def test_nothing_is_left_where_it_fails(tmp_path: Path):
    with pytest.raises(CodesFileError), open_sink(tmp_path / "x.txt", lines=False):
        pass
    with pytest.raises(ZeroDivisionError), open_sink(tmp_path / "x.wav", lines=False):
        raise ZeroDivisionError
    with open_sink(tmp_path / "x.npy", lines=False) as sink:
        sink.take(Frame(0, 0, codes=np.array([1], np.int32)))
    assert list(tmp_path.iterdir()) == []
