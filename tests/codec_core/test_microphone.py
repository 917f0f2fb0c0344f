"""A machine without a microphone, which is what tests run on, says what is missing."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from codec_core.errors import UnavailableError
from codec_core.microphone import Microphone


def test_without_the_package_its_name_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    with pytest.raises(UnavailableError, match="pip install sounddevice"):
        Microphone(lambda _: None)


@pytest.mark.skipif(importlib.util.find_spec("sounddevice") is None, reason="the extra mic is not installed")
def test_without_a_device_it_is_told():
    try:
        microphone = Microphone(lambda _: None)
    except UnavailableError as error:
        assert error.subject.startswith("microphone")  # noqa: PT017 - a machine that has one is fine too
    else:
        assert microphone.sample_rate_hz > 0
