"""The models that the properties of a stream are proven on."""

from __future__ import annotations

import pytest

from codec_core import CodecModel


@pytest.fixture(params=["tiny", "quantised", "default"])
def model(request: pytest.FixtureRequest) -> CodecModel:
    """The tiny model, whose ring wraps after four frames, one like it in class q8_0, and the embedded default."""
    return request.getfixturevalue(f"{request.param}_model")


@pytest.fixture
def levels() -> int:
    return 12
