from __future__ import annotations

import re

import pytest
from pydantic import ValidationError

from server.settings import Settings

COUNTED = {"max_pace", "port", "threads", "workers"}
"""Numbers that count themselves; as do names that end in what is counted."""


def test_every_setting_is_described_and_every_number_has_its_unit():
    for name, field in Settings.model_fields.items():
        assert field.description, name
        assert field.description.endswith("."), name
        if field.annotation in (int, int | None, float) and name not in COUNTED:
            assert re.search(
                r"_(ms|bytes|sessions|conversions|frames|messages|connections|messages_per_s|handshakes_per_s)$", name
            ), name


def test_environment_and_defaults(monkeypatch):
    monkeypatch.setenv("MIMI_MAX_SESSIONS", "9")
    monkeypatch.setenv("MIMI_ALLOW_REMOTE", "true")
    settings = Settings()
    assert (settings.max_sessions, settings.allow_remote, settings.host, settings.port) == (9, True, "127.0.0.1", 8000)


def test_settings_are_frozen_and_closed():
    with pytest.raises(ValidationError):
        Settings().port = 1
    with pytest.raises(ValidationError):
        Settings(colour="red")


def test_origins_are_split():
    assert Settings(allowed_origins=" http://a , http://b,").origin_allow_list == ("http://a", "http://b")
    assert Settings().origin_allow_list == ()


def test_pings_come_before_a_proxy_s_minute_is_over():
    """ANCHORS E9: usual proxies end a connection over which nothing went for 60 s."""
    assert Settings().ping_interval_ms < 60_000
