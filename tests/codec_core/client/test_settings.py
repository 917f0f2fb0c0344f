from __future__ import annotations

import json

import pytest

from codec_core.client import LineOptions, StreamSettings
from codec_core.errors import SettingError
from server.wire import Hello, ServerWire
from server.wire_settings import Offer
from server.wire_talk import LanguageOffer

OFFER = Offer(8, 32, 2048, 1920, 24_000, "kyutai", language=LanguageOffer(8, 8, 0.7, 25, 0.8, 250))


@pytest.mark.parametrize(
    ("settings", "unit_bytes"),
    [
        (StreamSettings(), 2),
        (StreamSettings("echo", 4, "f32le", 48_000, 2, echo_codes=True), 8),
        (StreamSettings("decode", 3, sample_rate_hz=16_000), 6),
        (StreamSettings(numerics="kyutai", channels=2), 4),
        (StreamSettings("talk", seed=7, text_temperature=0, top_k=3), 2),
    ],
)
def test_the_service_understands_them(settings: StreamSettings, unit_bytes: int):
    hello = ServerWire(OFFER, 65_536).receive_text(json.dumps({"type": "hello", **settings.hello()}))
    assert isinstance(hello, Hello)
    agreed = hello.settings
    assert (agreed.mode, agreed.format, agreed.sample_rate) == (settings.mode, settings.sample_format, settings.sample_rate_hz)
    assert (agreed.channels, agreed.echo_codes) == (settings.channels, "on" if settings.echo_codes else "off")
    assert agreed.levels == (settings.levels or 8)
    assert settings.unit_bytes(agreed.levels) == unit_bytes
    for name in ("seed", "text_temperature", "text_top_k", "temperature", "top_k"):
        if getattr(settings, name) is not None:
            assert getattr(agreed, name) == getattr(settings, name)


def test_what_the_client_must_know_it_checks():
    with pytest.raises(SettingError, match=r"^mode: found 'both', expected encode"):
        StreamSettings("both")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="sample_format"):
        StreamSettings(sample_format="mulaw")  # type: ignore[arg-type]


def test_secrets_are_not_shown():
    assert "hush" not in repr(LineOptions(key="hush", token="hush"))
