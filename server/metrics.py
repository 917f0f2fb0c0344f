"""The service's metrics: what the parts call, and what ``/metrics`` answers. Each service has a registry of its own.

Counts are made where things happen, by one small call; what is a state is asked for when somebody looks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_1_0_0, generate_latest

from server.codec_executor import DECODE, ENCODE, LANGUAGE
from server.metrics_table import METRICS

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_1_0_0
STEP_NAMES: Final = {ENCODE: "encode", DECODE: "decode", LANGUAGE: "language"}

# Each counter would come with a second one, of when it was made.
disable_created_metrics()  # type: ignore[no-untyped-call]

_CLASSES: Final = {"counter": Counter, "gauge": Gauge, "histogram": Histogram}


class Metrics:
    """One service's metrics; used from its event loop."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._made: dict[str, Any] = {name: self._make(name) for name in METRICS}
        self._series: dict[tuple[Any, ...], Any] = {}
        ProcessCollector(registry=self._registry)

    def _make(self, name: str) -> Any:
        row = METRICS[name]
        options: dict[str, Any] = {"buckets": row.buckets} if row.buckets else {}
        return _CLASSES[row.kind](name, row.help, row.labels, registry=self._registry, **options)

    def text(self) -> bytes:
        """Return everything in Prometheus' text form."""
        return generate_latest(self._registry)

    def observe(self, name: str, state: Callable[[], float], **labels: str) -> None:
        """Have a gauge ask for its value whenever somebody looks."""
        self._labelled(name, labels).set_function(state)

    def describe(self, **facts: str) -> None:
        """Say what runs; the labels of ``mimi_info``."""
        self._labelled("mimi_info", facts).set(1)

    def describe_language_model(self, **facts: str) -> None:
        """Say which language model there is; the labels of ``mimi_language_info``."""
        self._labelled("mimi_language_info", facts).set(1)

    def set_ready(self, check: str, *, passed: bool) -> None:
        """Tell how a check of readiness went."""
        self._labelled("mimi_ready", {"check": check}).set(passed)

    def admitted(self, kind: str) -> None:
        """Count a stream or conversion that is let in."""
        self._count("mimi_admissions_total", kind=kind)

    def refused(self, kind: str, code: str) -> None:
        """Count a handshake, stream or conversion that is not."""
        self._count("mimi_refusals_total", kind=kind, code=code)

    def dropped(self, code: str) -> None:
        """Count a TCP connection that was ended before a request had arrived."""
        self._count("mimi_dropped_connections_total", code=code)

    def step_done(self, step: str, sessions: int, busy_s: float) -> None:
        """Count a batch; see :class:`server.codec_executor.StepObserver`."""
        name = STEP_NAMES[step]
        self._labelled("mimi_batch_sessions", {"step": name}).observe(sessions)
        self._labelled("mimi_step_seconds", {"step": name}).observe(busy_s)
        self._made["mimi_busy_seconds_total"].inc(busy_s)

    def frame_done(self, step: str, latency_s: float, lateness_s: float, *, refused: bool) -> None:
        """Count a frame; see :class:`server.codec_executor.StepObserver`."""
        name = STEP_NAMES[step]
        if refused:
            self._count("mimi_refused_frames_total", step=name)
            return
        self._count("mimi_frames_total", step=name)
        self._labelled("mimi_frame_latency_seconds", {"step": name}).observe(latency_s)
        if lateness_s > 0:
            self._count("mimi_deadline_misses_total", step=name)
            self._labelled("mimi_frame_lateness_seconds", {"step": name}).observe(lateness_s)

    def resumed(self, outcome: str) -> None:
        """Count a stream that came back: ``ok``, or the code of its refusal."""
        self._count("mimi_resumes_total", outcome=outcome)

    def received(self, transport: str, size_bytes: int) -> None:
        """Count payload that came."""
        self._labelled("mimi_received_bytes_total", {"transport": transport}).inc(size_bytes)

    def sent(self, transport: str, size_bytes: int) -> None:
        """Count payload that went."""
        self._labelled("mimi_sent_bytes_total", {"transport": transport}).inc(size_bytes)

    def error(self, transport: str, code: str) -> None:
        """Count a refusal that was sent."""
        self._count("mimi_errors_total", transport=transport, code=code)

    def answered(self, method: str, status: int) -> None:
        """Count an HTTP request."""
        self._count("mimi_http_requests_total", method=method, status=str(status))

    def audited(self) -> None:
        """Count a look of the watchdog."""
        self._made["mimi_audits_total"].inc()

    def leaked_lease(self, kind: str) -> None:
        """Count a place that the watchdog gave back."""
        self._count("mimi_leaked_leases_total", kind=kind)

    def _count(self, name: str, **labels: str) -> None:
        self._labelled(name, labels).inc()

    def _labelled(self, name: str, labels: dict[str, str]) -> Any:
        # The library looks a series up by checking and joining all labels, under a lock; messages are counted one by one.
        key = (name, *labels.items())
        series = self._series.get(key)
        if series is None:
            metric = self._made[name]
            series = self._series[key] = metric.labels(**labels) if labels else metric
        return series
