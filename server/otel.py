"""The exporter of session spans. Needs the extra ``otel``: only :func:`server.tracing.start_tracing` imports it."""

from __future__ import annotations

from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

NAME: Final = "mimi-server"


def make_provider(version: str) -> TracerProvider:
    """Make what gives out tracers and sends spans where the ``OTEL_*`` variables say."""
    provider = TracerProvider(resource=Resource.create({"service.name": NAME, "service.version": version}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider
