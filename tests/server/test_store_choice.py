from __future__ import annotations

import logging

import pytest

from codec_core.errors import SettingError
from server.settings import Settings
from server.snapshot_store_directory import DirectoryStore
from server.store_choice import store_for


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIMI_SECRET", "correct horse battery staple")


@pytest.mark.usefixtures("secret")
def test_a_named_place_is_used_or_refused(tiny_model, tmp_path):
    assert isinstance(store_for(Settings(snapshot_store=str(tmp_path / "here")), tiny_model), DirectoryStore)
    (tmp_path / "file").write_text("x")
    with pytest.raises(SettingError, match="snapshot_store"):
        store_for(Settings(snapshot_store=str(tmp_path / "file")), tiny_model)


@pytest.mark.usefixtures("secret")
def test_the_usual_place_is_used_or_done_without(tiny_model, tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert isinstance(store_for(Settings(), tiny_model), DirectoryStore)
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with caplog.at_level(logging.WARNING, "mimi.server.snapshots"):
        assert store_for(Settings(), tiny_model) is None
    assert "will not outlive" in caplog.text


def test_what_nobody_could_read_is_not_saved(tiny_model, tmp_path, monkeypatch):
    assert store_for(Settings(), tiny_model) is None
    with pytest.raises(SettingError, match="secret"):
        store_for(Settings(snapshot_store=str(tmp_path)), tiny_model)
    monkeypatch.setenv("MIMI_SECRET", "correct horse battery staple")
    assert store_for(Settings(resume_grace_ms=0, snapshot_store=str(tmp_path / "unused")), tiny_model) is None
    assert not (tmp_path / "unused").exists()
