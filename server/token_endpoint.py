"""``/v1/token``: a key in, a short-lived token for a browser out."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse

from codec_core.errors import SettingError
from server import openapi
from server.access import KEY_NAME, Access
from server.access_token import SCOPES
from server.origin import check_origin
from server.service import Service, service_of
from server.wire_settings import quoted, unique_fields

router = APIRouter()

LEAST_LIFETIME_MS = 1_000


@router.post("/v1/token", response_class=JSONResponse, openapi_extra=openapi.TOKEN, responses=openapi.TOKEN_RESPONSES)
async def token(request: Request) -> JSONResponse:
    """Get a token for a browser.

    It goes into the query of a WebSocket handshake or a request, as `token`, instead of a key. Where the service asks for no
    key it is taken, too, and not needed.
    """
    service = service_of(request)
    check_origin(request, service.settings)
    fields = unique_fields(request.query_params.multi_items())
    for name in fields:
        if name not in ("scope", "lifetime_ms"):
            raise SettingError(quoted(name), found="an unknown setting", expected="scope | lifetime_ms")
    scope = _scope(fields.get("scope", ",".join(SCOPES)))
    lifetime_ms = _lifetime_ms(fields.get("lifetime_ms"), service)
    access: Access = request.app.state.access
    body: dict[str, Any] = {
        "token": access.issue(scope, lifetime_ms, request.scope.get(KEY_NAME, "")),
        "scope": ",".join(scope),
        "lifetime_ms": lifetime_ms,
    }
    return JSONResponse(body, headers={"cache-control": "no-store"})


def _scope(value: object) -> tuple[str, ...]:
    wanted = tuple(dict.fromkeys(str(value).split(",")))
    if not set(wanted) <= set(SCOPES):
        raise SettingError("scope", found=quoted(value), expected=f"of {','.join(SCOPES)}, those that are wanted")
    return wanted


def _lifetime_ms(value: object, service: Service) -> int:
    most = service.settings.token_lifetime_ms
    text = str(most if value is None else value)
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and LEAST_LIFETIME_MS <= int(text) <= most):
        raise SettingError("lifetime_ms", found=quoted(value), expected=f"a whole number from {LEAST_LIFETIME_MS} to {most}")
    return int(text)
