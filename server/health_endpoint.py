"""Probes and facts for operators and clients."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse

from server import openapi
from server.service import Service, service_of, version
from server.wire_messages import PROTOCOL_VERSION, SUBPROTOCOL
from server.wire_settings import CODES_FORMS, FORMATS, MODES, SAMPLE_RATE_RANGE_HZ

router = APIRouter()


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """Say that the process answers; restart it when it does not."""
    return {"status": "alive"}


@router.get("/readyz", responses={503: {"description": "Not ready; the body says why."}})
async def readyz(request: Request) -> JSONResponse:
    """Say whether new work is taken: model loaded, self-test passed, not draining."""
    service = service_of(request)
    body = {"ready": service.ready, "self_test": service.self_test, "draining": service.registry.draining}
    return JSONResponse(body, 200 if service.ready else 503)


@router.get("/v1/info", openapi_extra=openapi.INFO, responses=openapi.INFO_RESPONSES)
async def info(request: Request) -> dict[str, Any]:
    """Tell what runs here: model, protocol, limits and load."""
    service = service_of(request)
    model = asdict(service.model.info)
    del model["path"]
    return {"version": version(), "model": model, "protocol": _protocol(), "limits": _limits(service), "load": _load(service)}


def _protocol() -> dict[str, Any]:
    return {
        "version": PROTOCOL_VERSION,
        "subprotocol": SUBPROTOCOL,
        "modes": MODES,
        "formats": FORMATS,
        "codes": CODES_FORMS,
        "sample_rate_range": SAMPLE_RATE_RANGE_HZ,
    }


def _limits(service: Service) -> dict[str, int]:
    names = ("max_sessions", "max_conversions", "credit_frames", "max_message_bytes", "max_body_bytes", "max_clip_ms")
    return {name: getattr(service.settings, name) for name in names}


def _load(service: Service) -> dict[str, Any]:
    return {
        "streams": service.registry.count("stream"),
        "conversions": service.registry.count("conversion"),
        "refused": service.registry.refused,
        "spooled_bytes": service.spool_budget.held_bytes,
        "waiting_frames": service.executor.waiting_frames,
        **asdict(service.executor.stats),
    }
