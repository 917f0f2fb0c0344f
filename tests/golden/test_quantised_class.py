"""What the class q8_0 may cost on golden speech: the bars of docs/quantisation.md."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from codec_core import CodecModel
from codec_core.audio_file import AudioReader
from codec_core.clip import encode_clip
from codec_core.convert import convert_model
from codec_core.verify.drift import DriftCard, measure_drift
from codec_core.verify.vectors import PACKAGED

SPEECH = [str(PACKAGED / "default/signals/sample_2.wav"), str(PACKAGED / "full/signals/speech30s.wav")]


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> DriftCard:
    """The embedded default model, its convs in f16, with its projections in q8_0 and without."""
    folder = tmp_path_factory.mktemp("quantised")
    path = CodecModel.open("default").info.path
    convert_model(path, folder / "f16.gguf", dtype="f16")
    convert_model(path, folder / "q8_0.gguf", dtype="f16", quantize="q8_0")
    return measure_drift(CodecModel.open(folder / "f16.gguf"), CodecModel.open(folder / "q8_0.gguf"), SPEECH)


def test_semantic_codes_of_the_embedded_model(card: DriftCard) -> None:
    """What docs/quantisation.md says of it: its weights decide nearly all, 93.7 % here."""
    assert card.semantic_match >= 0.93


def test_semantic_codes_of_the_full_size_model(full_model: CodecModel, full_model_path: Path, tmp_path: Path) -> None:
    """The first ten seconds of the golden speech."""
    convert_model(full_model_path, tmp_path / "q8_0.gguf", quantize="q8_0")
    with AudioReader(SPEECH[1]) as reader:
        pcm = np.concatenate([*reader.pcm()])[: 125 * 1920]
    expected, found = (encode_clip(model, pcm, 1) for model in (full_model, CodecModel.open(tmp_path / "q8_0.gguf")))
    assert (expected == found).mean() >= 0.94


def test_first_eight_levels(card: DriftCard) -> None:
    assert card.prefix_match(8) >= 0.85


def test_sound_of_the_same_codes(card: DriftCard) -> None:
    for signal in card.signals:
        assert signal.sound.snr_db >= 30, signal.name


def test_the_file_is_smaller_and_so_is_the_model_in_memory(card: DriftCard) -> None:
    saved = Path(card.reference.path).stat().st_size - Path(card.model.path).stat().st_size
    assert saved > 2_300_000
    # RVQ projections of the f16 file are f32 in memory, so that more is saved there.
    assert card.reference.weights_bytes - card.model.weights_bytes >= saved
