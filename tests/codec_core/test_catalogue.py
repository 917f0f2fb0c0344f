from __future__ import annotations

from pathlib import Path

import pytest

from codec_core.catalogue import read_catalogue
from codec_core.errors import SettingError

ENTRY = f"""
[mine]
description = "a model"
repository = "someone/mine"
revision = "main"
file = "mine.safetensors"
sha256 = "{"0" * 64}"
sha256_verified = true
licence = "Apache-2.0"
"""


def test_the_packaged_catalogue_is_pinned_and_honest() -> None:
    entries = read_catalogue()
    assert list(entries) == ["kyutai-mimi", "kyutai-mimi-moshiko"]
    for entry in entries.values():
        assert len(entry.revision) == 40
        assert entry.licence == "CC-BY-4.0"
        assert not entry.sha256_verified
    assert entries["kyutai-mimi"].also == ("config.json",)


def test_another_catalogue_takes_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.toml").write_text(ENTRY)
    monkeypatch.setenv("MIMI_CATALOGUE", str(tmp_path / "x.toml"))
    (entry,) = read_catalogue().values()
    assert (entry.name, entry.repository, entry.also, entry.sha256_verified) == ("mine", "someone/mine", (), True)


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("[mine]", "[Mine]", "Mine"),
        ("[mine]", '["../mine"]', "../mine"),
        ("[mine]", "mine = 3\n[other]", "mine"),
        ("[mine]", "[mine", "TOML"),
        ("licence =", "license =", "license"),
        ('licence = "Apache-2.0"', "", "licence: found None"),
        ("someone/mine", "https://example.com/someone/mine", "repository"),
        ("mine.safetensors", "../mine.safetensors", "file"),
        ("mine.safetensors", "mine.bin", "file"),
        ('"main"', '"refs/pr/1?x"', "revision"),
        ("0" * 64, "0" * 63, "sha256"),
        ("true", '"yes"', "sha256_verified"),
        ("licence", 'also = ["../config.json"]\nlicence', "also"),
        ("licence", 'also = "config.json"\nlicence', "also"),
    ],
)
def test_what_is_no_catalogue(old: str, new: str, field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.toml").write_text(ENTRY.replace(old, new, 1))
    monkeypatch.setenv("MIMI_CATALOGUE", str(tmp_path / "x.toml"))
    with pytest.raises(SettingError) as caught:
        read_catalogue()
    assert field in str(caught.value)


def test_a_catalogue_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIMI_CATALOGUE", str(tmp_path / "none.toml"))
    with pytest.raises(SettingError, match=r"none\.toml"):
        read_catalogue()
