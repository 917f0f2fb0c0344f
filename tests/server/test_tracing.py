"""Spans of sessions, as OpenTelemetry's own exporter sends them to a collector that listens here."""

from __future__ import annotations

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from codec_core.errors import CodecError, SettingError
from server import tracing
from server.admission import demand_of
from server.errors import TooSlowError


class Collector(BaseHTTPRequestHandler):
    """Takes spans as OTLP over HTTP."""

    def do_POST(self) -> None:
        self.server.bodies.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def collector(monkeypatch):
    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        server.bodies = []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
        yield server
        server.shutdown()
        thread.join()


def test_a_span_for_each_session_with_its_end(collector):
    tracing.start_tracing("1.2.3")
    try:
        with tracing.session_span("stream", "abc") as span:
            span.set_demand(demand_of("echo", 4))
        with pytest.raises(CodecError), tracing.session_span("conversion", "def"):
            raise TooSlowError("client")
    finally:
        tracing.stop_tracing()
    requests = [ExportTraceServiceRequest.FromString(body) for path, body in collector.bodies if path == "/v1/traces"]
    resource = requests[0].resource_spans[0].resource
    assert {"service.name": "mimi-server", "service.version": "1.2.3"}.items() <= attributes(resource).items()
    spans = [
        span for request in requests for one in request.resource_spans for scope in one.scope_spans for span in scope.spans
    ]
    assert [(span.name, attributes(span)) for span in spans] == [
        ("stream", {"mimi.session": "abc", "mimi.steps": ["encode_batch", "decode_batch"], "mimi.levels": 4}),
        ("conversion", {"mimi.session": "def", "mimi.error": "too_slow"}),
    ]


def attributes(holder) -> dict[str, object]:
    return {pair.key: plain(pair.value) for pair in holder.attributes}


def plain(value) -> object:
    kind = value.WhichOneof("value")
    return [plain(one) for one in value.array_value.values] if kind == "array_value" else getattr(value, kind)


def test_off_there_is_nothing_to_pay():
    with tracing.session_span("stream", "abc") as span:
        span.set_demand(demand_of("encode", 8))
    tracing.stop_tracing()


def test_asked_for_and_not_installed_it_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "server.otel", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(SettingError, match=r"mimi-server\[otel\]"):
        tracing.start_tracing("1")
