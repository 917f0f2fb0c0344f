"""Probes and facts for operators and clients."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from server import openapi
from server.metrics import CONTENT_TYPE
from server.readiness import OK
from server.service import Service, metrics_text, service_of, stream_capacity, version
from server.wire_messages import PROTOCOL_VERSION, SUBPROTOCOL
from server.wire_settings import CODES_FORMS, FORMATS, SAMPLE_RATE_RANGE_HZ

router = APIRouter()


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """Say that the process answers; restart it when it does not."""
    return {"status": "alive"}


@router.get("/readyz", responses={503: {"description": "Not ready; the body says why."}})
async def readyz(request: Request) -> JSONResponse:
    """Say whether new work is taken: self-test passed, not draining, room for another stream, an engine that answers."""
    service = service_of(request)
    checks = service.readiness.results()
    ready = all(result == OK for result in checks.values())
    body = {"ready": ready, "self_test": service.self_test, "draining": service.registry.draining, "checks": checks}
    return JSONResponse(body, 200 if ready else 503)


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(request: Request) -> Response:
    """Answer all metrics in Prometheus' text form."""
    return Response(metrics_text(service_of(request)), media_type=CONTENT_TYPE)


@router.get("/v1/info", openapi_extra=openapi.INFO, responses=openapi.INFO_RESPONSES)
async def info(request: Request) -> dict[str, Any]:
    """Tell what runs here: model, protocol, limits and load."""
    service = service_of(request)
    model = asdict(service.model.info)
    del model["path"]
    return {
        "version": version(),
        "model": model,
        "language_model": _language_model(service),
        "protocol": _protocol(service),
        "limits": _limits(service),
        "load": _load(service),
        "window": _window(service),
    }


def _language_model(service: Service) -> dict[str, Any] | None:
    """Facts of the language model; null where there is none."""
    if service.language is None:
        return None
    facts = service.language.model.info.facts()
    del facts["path"]
    pieces = 0 if service.language.tokenizer is None else len(service.language.tokenizer)
    return {**facts, "tokenizer_pieces": pieces}


def _protocol(service: Service) -> dict[str, Any]:
    return {
        "version": PROTOCOL_VERSION,
        "subprotocol": SUBPROTOCOL,
        "modes": service.offer.modes,
        "formats": FORMATS,
        "codes": CODES_FORMS,
        "sample_rate_range": SAMPLE_RATE_RANGE_HZ,
    }


def _limits(service: Service) -> dict[str, int]:
    names = (
        "max_sessions",
        "max_address_sessions",
        "max_talk_sessions",
        "max_conversions",
        "credit_frames",
        "max_message_bytes",
        "max_body_bytes",
        "max_clip_ms",
    )
    return {name: getattr(service.settings, name) for name in names}


def _load(service: Service) -> dict[str, Any]:
    return {
        "streams": service.registry.count("stream"),
        "parked": service.streams.parked,
        "talking": service.streams.talking,
        "conversions": service.registry.count("conversion"),
        "refused": service.registry.refused,
        "spooled_bytes": service.spool_budget.held_bytes,
        "stream_capacity": stream_capacity(service),
        "headroom": service.admission.load().headroom,
        "waiting_frames": service.executor.waiting_frames,
        **asdict(service.executor.stats),
    }


def _window(service: Service) -> dict[str, Any] | None:
    """Counters of the tensor window; null where all weights are resident."""
    stats = service.model.window_stats
    return None if stats is None else asdict(stats)
