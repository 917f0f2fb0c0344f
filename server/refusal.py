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
    """Make the answer: the body ``{"error": {...}}``, the code as a header too, and ``Retry-After`` where it makes sense."""
    fields = error_fields(error)
    sent = {ERROR_HEADER: error.code, **(headers or {})}
    retry_after_ms = fields.get("retry_after_ms")
    if isinstance(retry_after_ms, int):
        sent["retry-after"] = str(math.ceil(retry_after_ms / 1000))
    return JSONResponse({"error": fields}, answer_for(error).http_status, sent)
