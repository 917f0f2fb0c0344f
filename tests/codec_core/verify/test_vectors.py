from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from codec_core.errors import AudioFileError, CodesFileError, SettingError
from codec_core.verify.vectors import PACKAGED, StageVectors, VectorFolder, read_arrays


def test_the_packaged_folders():
    full, default = VectorFolder(PACKAGED / "full"), VectorFolder(PACKAGED / "default")
    assert [signal.name for signal in full.signals] == ["speech30s", "tone440", "torture3s"]
    assert [signal.name for signal in default.signals] == ["sample_2"]
    for numerics in ("kyutai", "ggml"):
        (signal, stages), *rest = full.stages(numerics)
        assert (signal.name, rest) == ("tone440", [])
        assert len(stages.names()) == 25
    assert list(full.stages("ggml-causal")) == []
    for signal in (*full.signals, *default.signals):
        assert signal.pcm.dtype == np.float32
        assert signal.array("no such") is None


def test_a_folder_without_vectors(tmp_path: Path):
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(SettingError, match=r"NAME\.npz"):
            VectorFolder(path)


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04 not a zip", b"\x93NUMPY"])
def test_a_damaged_file(tmp_path: Path, content: bytes | None):
    if content is not None:
        (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(CodesFileError):
        read_arrays(tmp_path / "x.npz")


def test_pickled_objects_are_refused(tmp_path: Path):
    np.savez(tmp_path / "x.npz", codes=np.array([{"a": 1}], object), allow_pickle=True)
    with pytest.raises(CodesFileError):
        read_arrays(tmp_path / "x.npz")


@pytest.mark.parametrize(("shape", "rate_hz"), [((100,), 16000), ((100, 2), 24000)])
def test_a_signal_of_another_form(tmp_path: Path, shape: tuple[int, ...], rate_hz: int):
    (tmp_path / "signals").mkdir()
    soundfile.write(tmp_path / "signals" / "x.wav", np.zeros(shape), rate_hz)
    np.savez(tmp_path / "x.npz", kyutai_codes=np.zeros((1, 1)))
    with pytest.raises(AudioFileError, match="24000 Hz mono"):
        _ = VectorFolder(tmp_path).signals[0].pcm


def test_a_signal_that_is_no_audio(tmp_path: Path):
    (tmp_path / "signals").mkdir()
    (tmp_path / "signals" / "x.wav").write_bytes(b"RIFF")
    np.savez(tmp_path / "x.npz", kyutai_codes=np.zeros((1, 1)))
    with pytest.raises(AudioFileError):
        _ = VectorFolder(tmp_path).signals[0].pcm


def test_stages_may_be_thinned():
    stages = StageVectors(PACKAGED / "full" / "stages_ggml_tone440.npz")
    steps, digests = stages.steps("encoder.model.0"), stages.digests("encoder.model.0")
    assert steps is not None
    assert digests is not None
    assert stages.values("encoder.model.0").shape == (64, len(steps))
    assert digests.shape == (3840, 8)
    assert stages.steps("encoder.downsample") is None
