"""What a service's refusal becomes in a client: the error of the tree that bears the same code.

A refusal that the library itself would raise (``code_range``, ``non_finite_input``, ``setting``, ...) comes as that very class
of :mod:`codec_core.errors`. One that only a service has (``capacity``, ``unauthorized``, ``too_slow``, ...) is a
:class:`RemoteError`, whose ``code`` tells which. A service that cannot be reached, or does not speak ``mimi.v1``, is an
``UnavailableError``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from codec_core import errors
from codec_core.errors import CodecError, UnavailableError

RESUMABLE: Final = frozenset({"draining", "overloaded", "too_slow"})
"""Refusals that end a connection and leave its stream to be resumed."""
_FACT_MAX_CHARS: Final = 600


class RemoteError(CodecError):
    """A refusal that only a service has; ``str()`` reads as it was sent.

    ``code`` is the service's name for it, ``reason`` its fixed sentence. ``retry_after_ms`` is what the service asks to wait
    before the same is tried again; ``None`` where trying again makes no sense.
    """

    code = "service"

    def __init__(
        self,
        subject: str,
        found: str = "",
        expected: str = "",
        *,
        code: str = "service",
        reason: str = "",
        retry_after_ms: int | None = None,
    ) -> None:
        super().__init__(subject, found, expected)
        # Of the instance, not of a class: services of later versions may have codes that this one never heard of.
        self.code = code  # type: ignore[misc]
        self.reason = reason
        self.retry_after_ms = retry_after_ms


_LIBRARY: Final[Mapping[str, type[CodecError]]] = {
    cls.code: cls
    for cls in vars(errors).values()
    if isinstance(cls, type) and issubclass(cls, CodecError) and cls is not UnavailableError
}
"""The library's own classes by code. Another's ``unavailable`` is not ours: it says nothing about this machine."""


def refusal(fields: Mapping[str, object]) -> CodecError:
    """Turn the fields of an ``error`` message, or of a REST error body, into the error they stand for.

    Whatever the fields hold, this returns an error; facts are taken only where they are text.
    """
    code, subject = _text(fields, "code") or "service", _text(fields, "subject")
    facts = (subject or _text(fields, "message") or "service", _text(fields, "found"), _text(fields, "expected"))
    if code in _LIBRARY:
        return _LIBRARY[code](*facts)
    retry_after_ms = fields.get("retry_after_ms")
    if not isinstance(retry_after_ms, int) or isinstance(retry_after_ms, bool) or retry_after_ms < 0:
        retry_after_ms = None
    return RemoteError(*facts, code=code, reason=_text(fields, "reason"), retry_after_ms=retry_after_ms)


def refused_handshake(status: int, body: bytes | None) -> CodecError:
    """Turn an HTTP answer to a handshake into an error: the service's own where the body holds one."""
    try:
        fields = json.loads(body or b"")["error"]
    except (ValueError, KeyError, TypeError, RecursionError):
        fields = None
    if isinstance(fields, dict):
        return refusal(fields)
    return UnavailableError("handshake", f"HTTP status {status}", "a service that speaks mimi.v1 at this address")


def closed_unasked(close_code: int | None, reason: str) -> CodecError:
    """Name the end of a connection for which the service gave no ``error`` message."""
    if reason and reason.isidentifier():
        return refusal({"code": reason, "subject": "connection", "found": f"closed with {close_code}"})
    found = "a connection that was cut" if close_code is None else f"closed with {close_code} {reason}".rstrip()
    return UnavailableError("connection", found, "one that lasts until the stream is closed")


def retry_after_ms(error: CodecError) -> int | None:
    """Return the wait that the service asks for, or ``None`` where the error is no reason to try again."""
    return error.retry_after_ms if isinstance(error, RemoteError) else None


def _text(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    return value[:_FACT_MAX_CHARS] if isinstance(value, str) else ""
