"""The protocols described for machines: ``/asyncapi.json`` for streams. ``/openapi.json``, for REST, is FastAPI's own path."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Response

from server.asyncapi import document_text

router = APIRouter()

ASYNCAPI_TEXT: Final = document_text()


@router.api_route("/asyncapi.json", methods=["GET", "HEAD"], include_in_schema=False)
async def asyncapi() -> Response:
    """Describe the stream protocol, AsyncAPI 3."""
    return Response(ASYNCAPI_TEXT, media_type="application/json")
