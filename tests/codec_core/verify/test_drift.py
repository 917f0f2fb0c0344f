from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from codec_core import CodecModel
from codec_core.clip import decode_clip, encode_clip
from codec_core.compare import compare_sounds
from codec_core.errors import AudioFileError, SettingError, UnavailableError
from codec_core.spectral import log_spectral_distance_db, mel_distance_db
from codec_core.verify.drift import DriftCard, measure_drift
from codec_core.verify.drift_plot import plot_drift


@pytest.fixture(scope="module")
def wide_model(wide_checkpoint: Path) -> CodecModel:
    return CodecModel.open(wide_checkpoint)


@pytest.fixture
def audio(tmp_path: Path, pcm: np.ndarray) -> list[str]:
    for name, part in (("long", pcm[: 20 * 1920 + 100]), ("short", pcm[30 * 1920 : 32 * 1920])):
        soundfile.write(tmp_path / f"{name}.wav", part, 24000, subtype="FLOAT")
    return [str(tmp_path / f"{name}.wav") for name in ("long", "short")]


@pytest.fixture
def card(wide_model: CodecModel, quantised_model: CodecModel, audio: list[str]) -> DriftCard:
    return measure_drift(wide_model, quantised_model, audio)


def test_codes_are_those_of_the_same_audio(
    card: DriftCard, wide_model: CodecModel, quantised_model: CodecModel, pcm: np.ndarray
) -> None:
    parts = pcm[: 20 * 1920 + 100], pcm[30 * 1920 : 32 * 1920]
    matches = [encode_clip(wide_model, part, 32) == encode_clip(quantised_model, part, 32) for part in parts]
    assert [signal.name for signal in card.signals] == ["long.wav", "short.wav"]
    assert all(np.array_equal(signal.matches, expected) for signal, expected in zip(card.signals, matches, strict=True))
    together = np.concatenate(matches, axis=1)
    assert together.shape == (32, 23)
    assert card.code_match == together.mean()
    assert card.semantic_match == card.level_match[0] == together[0].mean()
    assert card.prefix_match(8) == together[:8].mean()
    assert card.level_match == [row.mean() for row in together]
    assert 0 < card.code_match < 1


def test_sound_is_that_of_the_same_codes(
    card: DriftCard, wide_model: CodecModel, quantised_model: CodecModel, pcm: np.ndarray
) -> None:
    codes = encode_clip(wide_model, pcm[30 * 1920 : 32 * 1920], 32)
    sound, moved = decode_clip(wide_model, codes), decode_clip(quantised_model, codes)
    short = card.signals[1]
    assert short.sound == compare_sounds(sound, moved)
    assert short.mel_distance_db == mel_distance_db(sound, moved) > 0
    assert short.log_spectral_distance_db == log_spectral_distance_db(sound, moved) > 0


def test_a_level_is_judged_by_itself_where_its_residual_was_equal(card: DriftCard) -> None:
    matches = card.matches
    assert card.first_match[:2] == card.level_match[:2]
    for level in range(2, 32):
        before = [frame for frame in range(matches.shape[1]) if matches[1:level, frame].all()]
        expected = matches[level, before].mean() if before else None
        assert card.first_match[level] == expected


def test_a_model_does_not_drift_from_itself(quantised_model: CodecModel, audio: list[str]) -> None:
    seen = []
    card = measure_drift(quantised_model, quantised_model, audio, lambda *done: seen.append(done))
    assert (card.code_match, card.semantic_match, card.first_match) == (1, 1, [1.0] * 32)
    assert all(signal.sound.bit_exact and signal.mel_distance_db == 0 for signal in card.signals)
    assert seen == [(1, 2), (2, 2)]
    fields = json.loads(json.dumps(card.fields(), allow_nan=False))
    assert fields["signals"][0]["snr_db"] is None


def test_what_cannot_be_compared(
    wide_model: CodecModel, tiny_model: CodecModel, default_model: CodecModel, audio: list[str], tmp_path: Path
) -> None:
    with pytest.raises(SettingError, match=r"codebook_entries of .*: found 1024, expected 32, as "):
        measure_drift(tiny_model, default_model, audio)
    with pytest.raises(SettingError, match="audio: found no file"):
        measure_drift(wide_model, wide_model, [])
    soundfile.write(tmp_path / "click.wav", np.zeros(1919, np.float32), 24000)
    with pytest.raises(AudioFileError, match=r"click.wav: found 1919 samples at 24 kHz, expected at least one frame"):
        measure_drift(wide_model, wide_model, [str(tmp_path / "click.wav")])


def test_picture(card: DriftCard, tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        plot_drift(card, tmp_path / name)
    data = (tmp_path / "a.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) > 5000
    assert (tmp_path / "b.png").read_bytes() == data


def test_picture_without_matplotlib(card: DriftCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Nowhere:
        @staticmethod
        def find_spec(*_place: object) -> None:
            return None

    monkeypatch.delitem(sys.modules, "matplotlib", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Nowhere])
    with pytest.raises(UnavailableError, match=r"matplotlib: found not installed, expected the extra 'plot'"):
        plot_drift(card, tmp_path / "x.png")
    assert not (tmp_path / "x.png").exists()
