"""The full-size model under the numerics of moshi.cpp."""

from __future__ import annotations

from pathlib import Path

import pytest

from codec_core import CodecModel


@pytest.fixture(scope="module")
def ggml_model(full_model_path: Path) -> CodecModel:
    return CodecModel.open(full_model_path, numerics="ggml", threads=2)
