from __future__ import annotations

import sys

import numpy as np
import pytest

from codec_core.client.opus_sound import OpusReceiver, OpusSender, require_opus
from codec_core.client.settings import StreamSettings
from codec_core.errors import OpusDataError, SettingError, UnavailableError


def widths(count: int) -> list[int]:
    """What a service says of a stream of so many frames: pre-skip first, the rest at the end."""
    return [3840 - 312] + [3840] * (count - 1) + [312]


@pytest.mark.parametrize("rate_hz", [24_000, 48_000])
@pytest.mark.parametrize("in_pages", [True, False], ids=["pages", "packets"])
def test_what_is_sent_comes_back_to_the_sample(in_pages, rate_hz):
    frame = rate_hz * 2 // 25
    sound = (0.3 * np.sin(np.arange(7 * frame) / 15)).astype(np.float32)
    sender = OpusSender(in_pages=in_pages, sample_rate_hz=rate_hz)
    receiver = OpusReceiver(in_pages=in_pages, sample_rate_hz=rate_hz)
    for _ in range(2):  # what follows a flush is a new stream
        messages = [one for piece in np.array_split(sound, 5) for one in sender.push(piece)] + sender.flush()
        assert [one.samples for one in messages] == [3840] * 8
        payloads = [one.data for one in messages]
        back = np.concatenate([receiver.decode(*one) for one in zip(payloads, widths(7), strict=True)])
        assert len(back) == len(sound)
        assert np.mean((back - sound)[frame:-frame] ** 2) < 0.05 * np.mean(sound**2)


def test_an_end_within_a_packet_is_told(rng):
    sender, receiver = OpusSender(in_pages=True, sample_rate_hz=24_000), OpusReceiver(in_pages=True, sample_rate_hz=48_000)
    messages = sender.push(rng.uniform(-0.1, 0.1, 2000).astype(np.float32)) + sender.flush()
    assert len(messages) == 2
    first = receiver.decode(messages[0].data, 3528)
    assert len(first) + len(receiver.decode(messages[1].data, 4000 - 3528)) == 4000


def test_nothing_makes_nothing():
    assert OpusSender(in_pages=True, sample_rate_hz=24_000).flush() == []


def test_a_service_that_says_another_length_is_not_believed():
    sender, receiver = OpusSender(in_pages=True, sample_rate_hz=24_000), OpusReceiver(in_pages=True, sample_rate_hz=24_000)
    message = sender.push(np.zeros(1920, np.float32))[0]
    with pytest.raises(OpusDataError, match="3528 samples, expected 3000"):
        receiver.decode(message.data, 3000)


def test_other_rates_are_refused_by_name():
    with pytest.raises(SettingError, match="24000 or 48000"):
        StreamSettings(sample_format="opus", sample_rate_hz=44_100)


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(UnavailableError, match=r"sample_format: Opus.+mimi-server\[opus\]"):
        require_opus()
