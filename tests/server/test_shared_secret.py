from __future__ import annotations

import pytest

from codec_core.errors import SettingError
from server.shared_secret import SharedSecret


def test_replicas_make_the_same_keys_and_purposes_different_ones():
    first, second = SharedSecret("sixteen characters"), SharedSecret("sixteen characters")
    assert first.key("one") == second.key("one") != first.key("other")
    assert len(first.key("one")) == 32


def test_without_a_secret_each_start_has_its_own():
    assert SharedSecret("").key("one") != SharedSecret("").key("one")


def test_a_short_secret_is_refused_and_not_shown():
    with pytest.raises(SettingError, match="secret: found 15 characters, expected at least 16") as refusal:
        SharedSecret("fifteen letters")
    assert "fifteen" not in str(refusal.value)
