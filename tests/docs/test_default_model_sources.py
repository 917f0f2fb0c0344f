"""docs/default_model/sources.toml, the model card and the notice that is shipped: every source, its licence, its maker."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "default_model"
TABLE = tomllib.loads((FOLDER / "sources.toml").read_text())
NOTICE = " ".join((resources.files("codec_core") / "models" / "NOTICE.md").read_text().split())


def test_every_source_says_where_it_is_from_and_what_it_allows():
    for name, entry in TABLE.items():
        assert entry["use"] in {"train", "evaluate"}, name
        assert {"licence", "attribution", "speakers"} <= set(entry), name
        assert ("package" in entry) != ("speak" in entry), name


def test_nothing_is_trained_on_whose_licence_asks_for_more_than_a_name():
    trained = [entry for entry in TABLE.values() if entry["use"] == "train"]
    for entry in trained:
        assert not any(word in entry["licence"] for word in ("GPL", "SA", "NC", "ND")), entry
    assert sum(entry["weight"] for entry in trained) == pytest.approx(1)


def test_no_package_is_both_trained_on_and_evaluated_with():
    used = [{entry.get("package") for entry in TABLE.values() if entry["use"] == use} for use in ("train", "evaluate")]
    assert not used[0] & used[1]


def test_the_notice_names_whom_the_licences_of_the_embedded_model_want_named():
    for name in (
        "Maxim Topal",
        "Creative Commons Attribution 3.0",
        "Nickolay V. Shmyrev",
        "Carnegie Mellon University",
        "Kokoro",
    ):
        assert name in NOTICE
