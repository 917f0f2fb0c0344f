"""An error as an HTTP answer, the same from every door of the service."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from starlette.responses import JSONResponse

from codec_core.errors import CodecError
from server.status_map import answer_for, error_fields

ERROR_HEADER: Final = "x-mimi-error"
"""Carries the code, so that proxies' logs and our own metrics have it without reading bodies."""


def refusal_response(error: CodecError, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Make the answer: the body ``{"error": {...}}``, the code as a header too, and what HTTP asks for beside a status.

    That is ``Retry-After`` where trying again makes sense, and ``WWW-Authenticate`` where a key is asked for.
    """
    fields = error_fields(error)
    status = answer_for(error).http_status
    sent = {ERROR_HEADER: error.code, **(headers or {})}
    if status == 401:
        sent["www-authenticate"] = "Bearer"
    retry_after_ms = fields.get("retry_after_ms")
    if isinstance(retry_after_ms, int):
        sent["retry-after"] = str(math.ceil(retry_after_ms / 1000))
    return JSONResponse({"error": fields}, status, sent)
