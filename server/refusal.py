"""An error as the HTTP answer that says so: one shape, whoever refuses."""

from __future__ import annotations

import math
from collections.abc import Mapping

from starlette.responses import JSONResponse

from codec_core.errors import CodecError
from server.status_map import answer_for, error_fields


def refusal(error: CodecError, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Make the answer: status and body of the error, ``Retry-After`` where trying again makes sense, and ``headers``."""
    fields = error_fields(error)
    status = answer_for(error).http_status
    sent = dict(headers or {})
    retry_after_ms = fields.get("retry_after_ms")
    if isinstance(retry_after_ms, int):
        sent["retry-after"] = str(math.ceil(retry_after_ms / 1000))
    if status == 401:
        sent["www-authenticate"] = "Bearer"
    return JSONResponse({"error": fields}, status, sent)
