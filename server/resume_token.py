"""Resume tokens: who holds one may take the stream up again. Signed, so that only this service's replicas can make one.

base64url without padding of, big-endian, version 1::

    u8        version
    16 bytes  stream
    u32       generation: counts the connections that the stream was given to
    u64       when it expires, Unix seconds
    32 bytes  sha256 of the model file
    u8[]      numerics, ASCII
    32 bytes  HMAC-SHA256 of everything before
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import struct
import time
from dataclasses import dataclass
from typing import Final

from server.errors import ResumeRefusedError
from server.shared_secret import SharedSecret

_VERSION: Final = 1
_BODY: Final = struct.Struct(">B16sIQ32s")
_MAC_BYTES: Final = 32
_NUMERICS_MAX_BYTES: Final = 32


@dataclass(frozen=True)
class ResumeToken:
    """What a token says."""

    stream_id: str
    generation: int
    expires_unix_s: int
    model_sha256: str
    numerics: str


def sign_token(token: ResumeToken, key: bytes) -> str:
    """Make the text that goes out."""
    stream, model = bytes.fromhex(token.stream_id), bytes.fromhex(token.model_sha256)
    body = _BODY.pack(_VERSION, stream, token.generation, token.expires_unix_s, model) + token.numerics.encode("ascii")
    return base64.urlsafe_b64encode(body + hmac.digest(key, body, hashlib.sha256)).decode().rstrip("=")


def read_token(text: str, key: bytes, now_unix_s: float) -> ResumeToken:
    """Undo :func:`sign_token`.

    Raises:
        ResumeRefusedError: malformed, not signed with this key, or expired. Nothing in it is looked at before the signature.

    """
    try:
        data = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error, ValueError) as cause:
        raise ResumeRefusedError("resume.token", found="no token", expected="that of a ready or goaway message") from cause
    body, mac = data[:-_MAC_BYTES], data[-_MAC_BYTES:]
    if not hmac.compare_digest(mac, hmac.digest(key, body, hashlib.sha256)):
        raise ResumeRefusedError("resume.token", found="another signature", expected="a token of this service, unchanged")
    if not _BODY.size <= len(body) <= _BODY.size + _NUMERICS_MAX_BYTES or body[0] != _VERSION:
        raise ResumeRefusedError("resume.token", found="another version", expected=f"version {_VERSION}")
    _, stream, generation, expires_unix_s, model = _BODY.unpack_from(body)
    if expires_unix_s <= now_unix_s:
        raise ResumeRefusedError("resume.token", found="an expired one", expected="one that is still good")
    return ResumeToken(stream.hex(), generation, expires_unix_s, model.hex(), body[_BODY.size :].decode("ascii", "replace"))


class TokenIssuer:
    """Makes and checks the tokens of one service.

    Args:
        secret: shared by the replicas.
        model_sha256: of the model file.
        numerics: what it runs under.
        longest_s: how long after its stream was opened a token may still be good.

    """

    def __init__(self, secret: SharedSecret, model_sha256: str, numerics: str, longest_s: float) -> None:
        self._secret = secret
        self._key = secret.key("resume token")
        self._model = model_sha256, numerics
        self._longest_s = longest_s

    @property
    def snapshot_key(self) -> bytes:
        """The key of the same secret that signs snapshots."""
        return self._secret.key("stream snapshot")

    def issue(self, stream_id: str, generation: int, opened_unix_s: float) -> str:
        """Make a token."""
        expires_unix_s = int(opened_unix_s + self._longest_s) + 1
        return sign_token(ResumeToken(stream_id, generation, expires_unix_s, *self._model), self._key)

    def read(self, text: str) -> ResumeToken:
        """Check a token.

        Raises:
            ResumeRefusedError: as :func:`read_token`, or it is of another model or other numerics.

        """
        token = read_token(text, self._key, time.time())
        if (token.model_sha256, token.numerics) != self._model:
            found = f"model {token.model_sha256[:12]}, {token.numerics} numerics"
            raise ResumeRefusedError("resume.token", found, f"model {self._model[0][:12]}, {self._model[1]} numerics")
        return token


def token_refused(found: str) -> ResumeRefusedError:
    """Make the refusal of a token that is genuine but out of date."""
    return ResumeRefusedError(
        "resume.token", found, "the token of the last ready or goaway of a stream that is parked or saved"
    )
