"""A machine without a loudspeaker, which is what tests run on, says what is missing."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from codec_core.client.jitter_buffer import JitterBuffer
from codec_core.errors import UnavailableError
from codec_core.speaker import Speaker


def test_without_the_package_its_name_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    with pytest.raises(UnavailableError, match=r"speaker: sounddevice.+pip install sounddevice"):
        Speaker(JitterBuffer(24_000))


@pytest.mark.skipif(importlib.util.find_spec("sounddevice") is None, reason="the extra sounddevice is not installed")
def test_without_a_device_it_is_told():
    try:
        speaker = Speaker(JitterBuffer(24_000))
    except UnavailableError as error:
        assert error.subject.startswith("speaker")  # noqa: PT017 - a machine that has one is fine too
    else:
        with speaker:
            speaker.finish()
        assert speaker.buffer.is_drained
