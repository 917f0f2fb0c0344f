"""The secret that all replicas of a service share, and the keys made from it, one for each purpose."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Final

from codec_core.errors import SettingError

LEAST_CHARS: Final = 16


class SharedSecret:
    """Makes signing keys.

    Args:
        text: the setting ``secret``; empty for one made now, which is lost when the process ends.

    Raises:
        SettingError: it is too short to be one.

    """

    def __init__(self, text: str) -> None:
        if text and len(text) < LEAST_CHARS:
            raise SettingError(
                "secret",
                found=f"{len(text)} characters",
                expected=f"at least {LEAST_CHARS}: openssl rand -hex 32 makes a good one",
            )
        self._secret = text.encode("utf-8", "surrogateescape") or secrets.token_bytes(32)

    def key(self, purpose: str) -> bytes:
        """Make the key for one purpose, so that nothing signed for one passes for another."""
        return hmac.digest(self._secret, f"mimi {purpose}".encode(), hashlib.sha256)
