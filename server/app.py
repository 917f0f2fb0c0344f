"""The application: endpoints, lifespan, and the one shape of an error body."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse

from codec_core import CodecModel
from codec_core.errors import CodecError
from server import (
    description_endpoint,
    health_endpoint,
    openapi,
    page_endpoint,
    rest_endpoint,
    stream_endpoint,
    token_endpoint,
)
from server.access import Access, AccessMiddleware
from server.api_keys import read_keys
from server.cors import allow_origins
from server.errors import MethodError, NotFoundError
from server.language import Language
from server.moshi_endpoint import moshi_router
from server.refusal import refusal_response
from server.service import ClientGoneError, build_service, start_service, stop_service, stream_capacity, version
from server.settings import Settings
from server.shared_secret import SharedSecret
from server.status_map import as_codec_error
from server.traffic import TrafficMiddleware
from server.wire_settings import quoted

DESCRIPTION = """
Live neural audio codes. `WebSocket /v1/stream` carries live streams (not shown here, OpenAPI has no words for it:
`/asyncapi.json` describes it); the calls below convert whole clips.

Every refusal has the body `{"error": {code, reason, message, subject, found, expected[, retry_after_ms]}}`.
"""
CLIENT_CLOSED_REQUEST = 499
"""Nobody reads it; it only shows in the access log."""

log = logging.getLogger("mimi.server")


def create_app(settings: Settings, model: CodecModel, language: Language | None = None) -> FastAPI:
    """Build the application around a loaded model, and a language model where streams of mode ``talk`` are wanted.

    Start-up runs the self-test, whose outcome ``/readyz`` reports, and measures the model; shutdown waits for the frames in the
    engine. Draining streams beforehand is the caller's: see :class:`server.process.DrainingServer`.

    Raises:
        SettingError: the file of keys, the secret or the store for snapshots is not fit for use.
        UnavailableError: a package that the store, or rooms for moshi-server's clients, need is not installed.

    """
    service = build_service(settings, model, language)
    access = Access(read_keys(settings), SharedSecret(settings.secret))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await start_service(service)
        outcome, golden, info = service.self_test, service.golden_codes, service.model.info
        facts = (outcome, golden, info.isa, info.numerics, stream_capacity(service))
        log.info("self-test: %s; golden codes: %s; %s, %s numerics; streams that fit: %d", *facts)
        yield
        await stop_service(service)

    # /docs is page_endpoint's: the one that comes with FastAPI loads its scripts from elsewhere.
    app = FastAPI(title="Mimi", version=version(), description=DESCRIPTION, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.service = service
    app.state.access = access
    app.add_middleware(AccessMiddleware, access=access, moshi_paths=settings.moshi_paths)
    # Further out than the keys: a browser asks for its leave without a key, and may read the refusal of one.
    allow_origins(app, settings)
    app.add_middleware(
        TrafficMiddleware, metrics=service.metrics, gate=service.gate, going_down=service.registry.draining_error
    )
    app.include_router(moshi_router(settings))
    for endpoint in (stream_endpoint, rest_endpoint, token_endpoint, health_endpoint, description_endpoint, page_endpoint):
        app.include_router(endpoint.router)
    openapi.describe(app)
    app.add_exception_handler(CodecError, _refuse)
    app.add_exception_handler(HTTPException, _refuse_path)
    app.add_exception_handler(Exception, _refuse)
    for gone in (ClientGoneError, ClientDisconnect):
        app.add_exception_handler(gone, _nobody_there)
    return app


async def _refuse(_: Request, cause: Exception) -> JSONResponse:
    return refusal_response(as_codec_error(cause))


async def _refuse_path(request: Request, cause: Exception) -> JSONResponse:
    """Answer what the router refuses, 404 and 405, in our shape."""
    headers = dict(getattr(cause, "headers", None) or {})
    allowed = headers.get("Allow")
    if allowed is not None:
        error: CodecError = MethodError("method", found=request.method, expected=allowed)
    else:
        error = NotFoundError("path", found=quoted(request.url.path), expected="one of those that /docs lists")
    return refusal_response(error, headers)


async def _nobody_there(_: Request, __: Exception) -> Response:
    return Response(status_code=CLIENT_CLOSED_REQUEST)
