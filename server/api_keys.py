"""The keys of a service, and which of them a request carries.

A key goes into the header ``Authorization: Bearer KEY`` or ``X-API-Key: KEY``, of requests and of WebSocket handshakes alike;
never into an address, which is logged on its way. Keys come from a setting and from a file, plain or as ``sha256:`` and the
hexadecimal digest, so that no installation has to keep the keys themselves.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from codec_core.errors import SettingError
from server.errors import UnauthorizedError
from server.settings import Settings

EXPECTED: Final = "the header Authorization: Bearer KEY, or X-API-Key: KEY"
_DIGEST: Final = re.compile(r"sha256:([0-9a-f]{64})")
_ID_BYTES: Final = 8
_FILE_CAP_BYTES: Final = 1 << 20


class ApiKeys:
    """A set of keys; only their digests are held, and comparing takes the same time whichever matches, if any.

    Args:
        keys: plain ones, or ``sha256:`` and the digest of one.

    """

    def __init__(self, keys: Iterable[str]) -> None:
        self._digests = [_digest_of(key) for key in keys]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def check(self, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """Pass headers that hold one of the keys, and name it; another ``Authorization`` beside it may be a proxy's.

        Args:
            headers: names in lower case, and values.

        Returns:
            A name for the key that tells nothing of it, see :meth:`knows`.

        Raises:
            UnauthorizedError: no key, or only unknown ones.

        """
        sent = [hashlib.sha256(key).digest() for key in _keys_of(headers)]
        if not sent:
            raise UnauthorizedError("key", found="none", expected=EXPECTED)
        matching = [known for one in sent for known in self._digests if hmac.compare_digest(one, known)]
        if not matching:
            raise UnauthorizedError("key", found="an unknown one", expected=EXPECTED)
        return _name(matching[0])

    def knows(self, name: str) -> bool:
        """Tell whether a key of this name is still one of them."""
        return any(name == _name(known) for known in self._digests)


def read_keys(settings: Settings) -> ApiKeys:
    """Take the keys of the setting and of the file: one a line, empty lines and those that begin with ``#`` left out.

    Raises:
        SettingError: the file cannot be read, or has no key, which would leave the service open.

    """
    keys = list(settings.api_key_list)
    if settings.api_keys_file:
        keys += _keys_in(settings.api_keys_file)
    return ApiKeys(keys)


def _keys_in(path: str) -> list[str]:
    try:
        with Path(path).open(encoding="utf-8") as file:
            lines = [line.strip() for line in file.read(_FILE_CAP_BYTES).splitlines()]
    except (OSError, UnicodeDecodeError) as cause:
        reason = cause.strerror if isinstance(cause, OSError) else "bytes that are not UTF-8"
        raise SettingError("api_keys_file", found=f"{path}: {reason}", expected="a file of keys, one a line") from cause
    keys = [line for line in lines if line and not line.startswith("#")]
    if not keys:
        raise SettingError("api_keys_file", found=f"no key in {path}", expected="a file of keys, one a line")
    return keys


def _keys_of(headers: Iterable[tuple[bytes, bytes]]) -> Iterator[bytes]:
    for name, value in headers:
        if name == b"x-api-key":
            yield value.strip()
        elif name == b"authorization":
            scheme, _, key = value.strip().partition(b" ")
            if scheme.lower() == b"bearer":
                yield key.strip()


def _digest_of(key: str) -> bytes:
    given = _DIGEST.fullmatch(key)
    return bytes.fromhex(given[1]) if given else hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()


def _name(digest: bytes) -> str:
    return hashlib.sha256(b"name of " + digest).digest()[:_ID_BYTES].hex()
