"""Probes and facts for operators, and the page a person sees first."""

from __future__ import annotations

import html
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, JSONResponse

from server.service import Service, service_of, version
from server.wire_messages import PROTOCOL_VERSION, SUBPROTOCOL
from server.wire_settings import CODES_FORMS, FORMATS, MODES, SAMPLE_RATE_RANGE_HZ

router = APIRouter()

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Mimi</title>
<style>body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 3rem auto; padding: 0 1rem }}
pre {{ background: #8881; padding: .8rem; overflow-x: auto }}</style></head><body>
<h1>Mimi, live neural audio codes</h1>
<p>This service turns 24 kHz audio into RVQ codes, one frame every 80 ms, and back. It runs the model
<b>{model}</b> ({weight_class}, {numerics} numerics, up to {levels} levels).</p>
<p>Live, over a WebSocket: connect, send raw 16-bit PCM in pieces of any size, get one binary message a frame.</p>
<pre>{scheme}://{host}/v1/stream?mode=encode&amp;levels={default_levels}</pre>
<p>One clip, over HTTP:</p>
<pre>curl --data-binary @speech.wav -H 'Content-Type: audio/wav' {http_scheme}://{host}/v1/encode -o codes.json
curl --data-binary @codes.json -H 'Content-Type: application/json' {http_scheme}://{host}/v1/decode -o back.wav</pre>
<p><a href="/docs">REST reference</a> &middot; <a href="/v1/info">facts</a> &middot; <a href="/healthz">alive</a> &middot;
<a href="/readyz">ready</a></p>
</body></html>
"""


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


@router.get("/v1/info")
async def info(request: Request) -> dict[str, Any]:
    """Tell what runs here: model, protocol, limits and load."""
    service = service_of(request)
    model = asdict(service.model.info)
    del model["path"]
    return {"version": version(), "model": model, "protocol": _protocol(), "limits": _limits(service), "load": _load(service)}


@router.get("/", include_in_schema=False)
async def page(request: Request) -> HTMLResponse:
    """Show a person what this is."""
    service = service_of(request)
    model = service.model.info
    secure = request.url.scheme == "https"
    facts = {
        "model": model.name,
        "weight_class": model.weight_class,
        "numerics": model.numerics,
        "levels": model.levels,
        "default_levels": model.default_levels,
        "host": request.url.netloc,
        "scheme": "wss" if secure else "ws",
        "http_scheme": "https" if secure else "http",
    }
    return HTMLResponse(PAGE.format(**{name: html.escape(str(fact)) for name, fact in facts.items()}))


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
        "waiting_frames": service.executor.waiting_frames,
        **asdict(service.executor.stats),
    }
