from __future__ import annotations

import re

import pytest
import typer
from typer.testing import CliRunner

from codec_core.errors import SettingError
from server.command import command, option_name, read_settings
from server.settings import Settings


def test_every_setting_is_an_option_with_its_variable_and_default(monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    app = typer.Typer(add_completion=False)
    app.command()(command)
    text = CliRunner().invoke(app, ["--help"]).output
    for name, field in Settings.model_fields.items():
        assert option_name(name) in text
        assert f"MIMI_{name.upper()}, default" in text
        assert field.description.split()[0] in text
    assert len(re.findall(r"\[MIMI_", text)) == len(Settings.model_fields)


def test_the_first_refused_setting_is_named_as_it_was_given(monkeypatch):
    with pytest.raises(SettingError, match="--credit-frames: found 0"):
        read_settings({"credit_frames": 0, "port": None})
    monkeypatch.setenv("MIMI_CREDIT_FRAMES", "-3")
    with pytest.raises(SettingError, match="MIMI_CREDIT_FRAMES: found '-3'"):
        read_settings({"credit_frames": None})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"port": 99_999}, "--port: found 99999, expected 0 .. 65535"),
        ({"max_queued_messages": 1}, "--max-queued-messages: found 1, expected at least 16"),
        ({"threads": 0}, "--threads: found 0, expected 1 .. 1024"),
        ({"log_level": "loud"}, "--log-level: found 'loud', expected critical | error | warning | info | debug"),
        ({"allow_remote": "maybe"}, "--allow-remote: found 'maybe', expected true | false"),
    ],
)
def test_a_refused_setting_says_which_values_it_may_have(given, says):
    with pytest.raises(SettingError) as refusal:
        read_settings(given)
    assert str(refusal.value) == says


def test_options_go_before_variables(monkeypatch):
    monkeypatch.setenv("MIMI_PORT", "1000")
    assert read_settings({"port": 2000}).port == 2000
    assert read_settings({"port": None}).port == 1000
