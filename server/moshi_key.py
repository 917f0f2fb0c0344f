"""Keys of clients of moshi-server, which have them in another header, or in the query."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote_to_bytes

from starlette.types import Scope

KEY_HEADER: Final = b"kyutai-api-key"
KEY_FIELD: Final = b"auth_id="


def adopt_key(scope: Scope) -> None:
    """Take a key from where clients of moshi-server have it to where ours have it, and out of the address, in place."""
    parts = scope["query_string"].split(b"&")
    scope["query_string"] = b"&".join(part for part in parts if not part.startswith(KEY_FIELD))
    keys = [value for name, value in scope["headers"] if name == KEY_HEADER]
    keys += [unquote_to_bytes(part[len(KEY_FIELD) :]) for part in parts if part.startswith(KEY_FIELD)]
    scope["headers"] = [*scope["headers"], *((b"x-api-key", key) for key in keys)]
