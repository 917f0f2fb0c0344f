from __future__ import annotations

import numpy as np
import pytest

from codec_core import CodecModel
from codec_core._ext import Kernels
from codec_core.errors import SettingError, UnavailableError
from codec_core.variant import open_variant


@pytest.mark.parametrize("isa", Kernels.usable_isas())
def test_another_instruction_set_and_more_threads(tiny_model: CodecModel, pcm: np.ndarray, isa: str):
    variant = open_variant(tiny_model, isa=isa, threads=3)
    assert (variant.info.isa, variant.info.threads, variant.info.numerics) == (isa, 3, tiny_model.info.numerics)
    assert variant.info.sha256 == tiny_model.info.sha256
    session = variant.restore_encoder(tiny_model.encoder(4).snapshot())
    assert np.array_equal(session.push(pcm[:9600]), tiny_model.encoder(4).push(pcm[:9600]))


def test_other_numerics(tiny_model: CodecModel):
    assert open_variant(tiny_model, numerics="ggml").info.numerics == "ggml"
    with pytest.raises(SettingError):
        open_variant(tiny_model, numerics="exact")


def test_an_absent_instruction_set(tiny_model: CodecModel):
    with pytest.raises(UnavailableError, match="sse9"):
        open_variant(tiny_model, isa="sse9")
