from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from codec_core import CodecModel
from codec_core.errors import CodesFileError
from codec_core.verify.conformance import check_codes, check_sound, check_stages, has_codes, has_sound
from codec_core.verify.vectors import SignalVectors, StageVectors

Arrays = dict[str, np.ndarray]


def test_what_is_right_passes(model: CodecModel, arrays: Arrays, write_signal):
    signal = write_signal(arrays)
    assert has_codes(signal, model.info.numerics)
    assert has_sound(signal, model.info.numerics)
    assert check_codes(model, signal) is None
    assert check_sound(model, signal) is None


def test_a_code_is_named(model: CodecModel, arrays: Arrays, write_signal):
    arrays[f"{model.info.numerics}_codes"][[7, 3], [4, 5]] ^= 1
    difference = check_codes(model, write_signal(arrays))
    assert difference is not None
    assert (difference.what, difference.frame, difference.level, difference.differing) == ("codes", 4, 7, 2)
    assert str(difference).startswith("codes, frame 4, level 7: expected ")


def test_the_code_of_a_padded_tail_is_named(model: CodecModel, arrays: Arrays, write_signal):
    arrays[f"{model.info.numerics}_codes_flushed"][2, -1] ^= 1
    difference = check_codes(model, write_signal(arrays))
    assert difference is not None
    assert (difference.frame, difference.level) == (6, 2)


def test_a_second_right_code_is_right(model: CodecModel, arrays: Arrays, write_signal):
    codes = arrays[f"{model.info.numerics}_codes"]
    arrays[f"{model.info.numerics}_codes_second"] = codes.copy()
    codes[7, 4] ^= 1
    assert check_codes(model, write_signal(arrays)) is None


@pytest.mark.parametrize(("level", "share", "passes"), [(9, 0.98, True), (9, 0.99, False), (3, 0.98, False)])
def test_a_folder_may_allow_for_near_ties(level, share, passes, *, model: CodecModel, arrays: Arrays, write_signal):
    """Under kyutai numerics only, on late levels only, and only so many: here one of 72 codes is wrong."""
    arrays[f"{model.info.numerics}_codes"][level, 5] ^= 1
    arrays |= {"exact_levels": np.int32(8), "least_code_match": np.float64(share)}
    found = check_codes(model, write_signal(arrays)) is None
    assert found == (passes and model.info.numerics == "kyutai")


def test_a_bit_of_the_sound_is_named(model: CodecModel, arrays: Arrays, write_signal):
    """kyutai sound is compared by its SNR, its pinned bits by their digests."""
    numerics = model.info.numerics
    sound = arrays[f"{numerics}_pcm"]
    sound[3 * 1920 + 17] = np.nextafter(sound[3 * 1920 + 17], np.float32(2))
    signal = write_signal(arrays)
    difference = check_sound(model, signal)
    if numerics == "kyutai":
        assert difference is None
    else:
        assert difference is not None
        assert (difference.frame, difference.step, difference.differing) == (3, 17, 1)
        assert "(0x" in difference.expected


def test_a_wrong_digest_names_its_frame(model: CodecModel, arrays: Arrays, write_signal):
    arrays[f"{model.info.numerics}_pcm_digests"][2, 0] ^= 1
    difference = check_sound(model, write_signal(arrays))
    assert difference is not None
    assert (difference.what, difference.frame) == ("sound", 2)


def test_noise_at_90_db_is_too_much(model: CodecModel, arrays: Arrays, write_signal):
    sound = arrays[f"{model.info.numerics}_pcm"]
    sound *= np.float32(1 + 10 ** (-90 / 20))
    difference = check_sound(model, write_signal(arrays))
    assert difference is not None
    assert difference.found == "90.0 dB" or model.info.numerics == "ggml"


def _check_stages(model: CodecModel, signal: SignalVectors, stages: Arrays, folder: Path):
    np.savez(folder / "stages.npz", **stages)
    return check_stages(model, signal, StageVectors(folder / "stages.npz"))


def test_right_stages_pass(model: CodecModel, arrays: Arrays, write_signal, stage_arrays: Arrays, tmp_path: Path):
    assert _check_stages(model, write_signal(arrays), stage_arrays, tmp_path) is None


@pytest.mark.parametrize(
    ("name", "step", "place"),
    [("encoder.model.0", 33, (1, 60)), ("encoder.transformer", 3, (1, 1)), ("decoder.model.11", 2, (0, 120))],
)
def test_a_stage_is_named(
    name, step, place, *, model: CodecModel, arrays: Arrays, write_signal, stage_arrays: Arrays, tmp_path: Path
):
    stage_arrays[name][1, step] += 1
    difference = _check_stages(model, write_signal(arrays), stage_arrays, tmp_path)
    assert difference is not None
    assert (difference.what, difference.frame, difference.step, difference.channel) == (name, *place, 1)


def test_a_step_that_is_not_stored_is_found_by_its_digest(
    model: CodecModel, arrays: Arrays, write_signal, stage_arrays: Arrays, tmp_path: Path
):
    stage_arrays["decoder.model.12.digests"][1920 + 7, 3] ^= 4
    difference = _check_stages(model, write_signal(arrays), stage_arrays, tmp_path)
    assert difference is not None
    assert (difference.what, difference.frame, difference.step) == ("decoder.model.12", 1, 7)


def test_the_first_of_two_stages_is_named(
    model: CodecModel, arrays: Arrays, write_signal, stage_arrays: Arrays, tmp_path: Path
):
    for name in ("decoder.model.2", "encoder.model.9"):
        stage_arrays[name][0, 0] += 1
    difference = _check_stages(model, write_signal(arrays), stage_arrays, tmp_path)
    assert difference is not None
    assert difference.what == "encoder.model.9"


def test_a_stage_too_many(model: CodecModel, arrays: Arrays, write_signal, stage_arrays: Arrays, tmp_path: Path):
    stage_arrays["encoder.model.99"] = stage_arrays["encoder.model.0"]
    difference = _check_stages(model, write_signal(arrays), stage_arrays, tmp_path)
    assert difference is not None
    assert difference.what == "encoder.model.99"


def test_vectors_without_codes(model: CodecModel, arrays: Arrays, write_signal):
    del arrays[f"{model.info.numerics}_codes"]
    signal = write_signal(arrays)
    assert not has_codes(signal, model.info.numerics)
    assert not has_sound(signal, model.info.numerics)
    with pytest.raises(CodesFileError, match="_codes"):
        check_codes(model, signal)
