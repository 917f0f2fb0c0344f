"""The quality card against the measures' own packages, where the extra ``quality`` is installed."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from codec_core import CodecModel
from codec_core.clip import decode_clip, encode_clip
from codec_core.errors import AudioFileError, SettingError
from codec_core.pcm import at_rate
from codec_core.spectral import mel_distance_db
from codec_core.verify import speech_measures
from codec_core.verify.quality import QualityCard, measure_quality
from codec_core.verify.quality_plot import plot_spectrograms
from codec_core.verify.speech_measures import Recogniser, word_errors
from codec_core.verify.vectors import PACKAGED

SPEECH = PACKAGED / "default" / "signals" / "sample_2.wav"
LEVELS = (1, 32)


@pytest.fixture(scope="module")
def card(default_model: CodecModel, tmp_path_factory: pytest.TempPathFactory) -> QualityCard:
    """Of a recording and a part of it, in folders of their own."""
    pytest.importorskip("pystoi", reason="wants the extra quality")
    pytest.importorskip("pesq", reason="wants the extra quality")
    pytest.importorskip("pocketsphinx", reason="wants the extra quality")
    folder = tmp_path_factory.mktemp("speech")
    pcm = soundfile.read(SPEECH, dtype="float32")[0]
    for source, part in (("reader", pcm), ("part", pcm[24_000:72_000])):
        (folder / source).mkdir()
        soundfile.write(folder / source / "a.wav", part, 24_000, subtype="PCM_16")
    return measure_quality(default_model, [str(folder)], LEVELS, recognised=[str(folder / "reader")])


def test_measures_are_those_of_the_packages(card: QualityCard, default_model: CodecModel) -> None:
    pesq, pystoi = (importlib.import_module(name) for name in ("pesq", "pystoi"))
    pcm = soundfile.read(SPEECH, dtype="float32")[0]
    decoded = np.clip(decode_clip(default_model, encode_clip(default_model, pcm, 32))[: len(pcm)], -1, 1)
    first, second = at_rate(pcm, 16_000), at_rate(decoded, 16_000)
    (clip,) = [clip for clip in card.clips if (clip.source, clip.levels) == ("reader", 32)]
    assert clip.stoi == pytest.approx(pystoi.stoi(first, second, 16_000))
    assert clip.pesq == pytest.approx(pesq.pesq(16_000, first, second, "wb"))
    assert clip.mel_distance_db == mel_distance_db(pcm, decoded)


def test_more_levels_are_nearer_to_the_original(card: QualityCard) -> None:
    few, all_of_them = card.by_level()
    assert (few.levels, all_of_them.levels) == LEVELS
    assert few.stoi < 0.75
    assert all_of_them.stoi > 0.8
    assert few.mel_distance_db > all_of_them.mel_distance_db
    assert few.word_agreement is not None
    assert all_of_them.word_agreement is not None
    assert few.word_agreement < all_of_them.word_agreement
    assert all_of_them.kbit_s == 4


def test_sources_are_the_folders(card: QualityCard) -> None:
    assert card.sources == ["part", "reader"]
    level = card.by_level()[1]
    assert level.stoi == pytest.approx(np.mean([card.source_stoi(source, 32) for source in card.sources]))
    assert level.worst_clip_stoi == min(card.source_stoi(source, 32) for source in card.sources)
    assert set(json.loads(json.dumps(card.fields()))["sources"]) == {"part", "reader"}


def test_the_recogniser_hears_the_same_at_any_loudness() -> None:
    pytest.importorskip("pocketsphinx", reason="wants the extra quality")
    pcm, recogniser = soundfile.read(SPEECH, dtype="float32")[0], Recogniser()
    words = recogniser.words(pcm)
    assert len(words) > 4
    assert recogniser.words(pcm * np.float32(0.25)) == words


@pytest.mark.parametrize(
    ("expected", "found", "errors"),
    [
        ("a b c", "a b c", 0),
        ("a b c", "a c", 1),
        ("a b c", "a x b y c", 2),
        ("a b c", "c b a", 2),
        ("", "a b", 2),
        ("a b", "", 2),
    ],
)
def test_word_errors(expected: str, found: str, errors: int) -> None:
    assert word_errors(expected.split(), found.split()) == errors


def test_silence_has_no_pesq() -> None:
    pytest.importorskip("pesq", reason="wants the extra quality")
    silence = np.zeros(48_000, np.float32)
    assert speech_measures.pesq_wideband(silence, silence) is None


def test_what_cannot_be_measured(default_model: CodecModel, tmp_path: Path) -> None:
    pytest.importorskip("pystoi", reason="wants the extra quality")
    pytest.importorskip("pesq", reason="wants the extra quality")
    with pytest.raises(SettingError, match="audio: found no file"):
        measure_quality(default_model, [], [8])
    with pytest.raises(SettingError, match=r"levels: found 33, expected 1 .. 32"):
        measure_quality(default_model, [str(SPEECH)], [33])
    with pytest.raises(AudioFileError, match="a folder without audio"):
        measure_quality(default_model, [str(tmp_path)], [8])
    soundfile.write(tmp_path / "click.wav", np.zeros(23_999, np.float32), 24_000)
    with pytest.raises(AudioFileError, match="at least a second of speech"):
        measure_quality(default_model, [str(tmp_path / "click.wav")], [8])


def test_picture(default_model: CodecModel, tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        plot_spectrograms(default_model, SPEECH, (8, 32), tmp_path / name)
    data = (tmp_path / "a.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) > 20_000
    assert (tmp_path / "b.png").read_bytes() == data
