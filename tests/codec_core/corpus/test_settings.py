"""Settings of a corpus."""

from __future__ import annotations

import pytest

from codec_core.corpus.settings import MOST_SHARD_SOURCES, CorpusSettings
from codec_core.errors import SettingError


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("form", "csv"),
        ("shard_size", 0),
        ("shard_size", MOST_SHARD_SOURCES + 1),
        ("channels", "left"),
        ("channels", "-1"),
        ("channels", "64"),
        ("channels", "٣"),
    ],
)
def test_values_outside_their_range(name: str, value: object):
    with pytest.raises(SettingError):
        CorpusSettings(**{name: value})


def test_shards_and_channel():
    assert [CorpusSettings(shard_size=10).shards(count) for count in (0, 1, 10, 11)] == [0, 1, 1, 2]
    assert [CorpusSettings(channels=text).only_channel for text in ("mix", "split", "0", "63")] == [None, None, 0, 63]
