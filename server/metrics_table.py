"""Every metric of the service, once: ``/metrics`` is made from this table, and docs/operations.md is compared with it."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

MetricKind = Literal["counter", "gauge", "histogram"]


class MetricRow(NamedTuple):
    """One metric."""

    kind: MetricKind
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()


_LATENCY_BUCKETS_S: Final = (0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5)
_LATENESS_BUCKETS_S: Final = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56)
_BATCH_BUCKETS: Final = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0)

METRICS: Final[dict[str, MetricRow]] = {
    "mimi_info": MetricRow(
        "gauge",
        ("version", "model", "sha256", "weight_class", "numerics", "isa", "threads", "workers"),
        "Always 1; the labels say what runs.",
    ),
    "mimi_language_info": MetricRow(
        "gauge",
        ("model", "sha256", "weight_class", "isa", "threads"),
        "1 where there is a language model; the labels say which.",
    ),
    "mimi_ready": MetricRow("gauge", ("check",), "1 while a check of /readyz passes, else 0."),
    "mimi_sessions": MetricRow("gauge", ("kind",), "Places taken, by kind: stream or conversion."),
    "mimi_session_capacity": MetricRow("gauge", (), "Encoding streams of default levels that this machine holds, as measured."),
    "mimi_admissions_total": MetricRow("counter", ("kind",), "Streams and conversions let in."),
    "mimi_refusals_total": MetricRow(
        "counter", ("kind", "code"), "Handshakes, streams and conversions refused, by error code."
    ),
    "mimi_connections": MetricRow("gauge", (), "Open TCP connections, idle ones too."),
    "mimi_dropped_connections_total": MetricRow("counter", ("code",), "TCP connections ended before a request had arrived."),
    "mimi_waiting_frames": MetricRow("gauge", (), "Frames that no worker has taken yet."),
    "mimi_queued_frames": MetricRow("gauge", (), "Frames that streams have read and not answered yet."),
    "mimi_unsent_bytes": MetricRow("gauge", (), "Bytes of answers that wait for clients to read."),
    "mimi_parked_sessions": MetricRow("gauge", (), "Streams that wait for their client to come back."),
    "mimi_engine_sessions": MetricRow("gauge", (), "Codec sessions that the executor knows."),
    "mimi_batch_sessions": MetricRow("histogram", ("step",), "Sessions in a batch.", _BATCH_BUCKETS),
    "mimi_step_seconds": MetricRow("histogram", ("step",), "Time that a batch takes a worker.", _LATENCY_BUCKETS_S),
    "mimi_frames_total": MetricRow("counter", ("step",), "Frames answered."),
    "mimi_refused_frames_total": MetricRow("counter", ("step",), "Frames that the engine refused."),
    "mimi_frame_latency_seconds": MetricRow("histogram", ("step",), "From a frame's coming to its answer.", _LATENCY_BUCKETS_S),
    "mimi_frame_lateness_seconds": MetricRow(
        "histogram", ("step",), "How long after it was due a late frame was answered.", _LATENESS_BUCKETS_S
    ),
    "mimi_deadline_misses_total": MetricRow("counter", ("step",), "Frames answered after they were due."),
    "mimi_busy_seconds_total": MetricRow("counter", (), "Time that workers spent in the engine."),
    "mimi_realtime_headroom": MetricRow("gauge", (), "1 at rest, 0 at the limit of real time, below it overloaded."),
    "mimi_predicted_latency_seconds": MetricRow("gauge", (), "Expected time of the slowest frames, of those admitted."),
    "mimi_late_share": MetricRow("gauge", (), "Late frames among those of the last moments."),
    "mimi_resumes_total": MetricRow("counter", ("outcome",), "Streams that came back, by outcome: ok, or the error code."),
    "mimi_received_bytes_total": MetricRow("counter", ("transport",), "Payload received, over http or websocket."),
    "mimi_sent_bytes_total": MetricRow("counter", ("transport",), "Payload sent, over http or websocket."),
    "mimi_errors_total": MetricRow("counter", ("transport", "code"), "Refusals sent, by transport and error code."),
    "mimi_http_requests_total": MetricRow("counter", ("method", "status"), "HTTP requests answered."),
    "mimi_audits_total": MetricRow("counter", (), "Looks of the watchdog."),
    "mimi_leaked_leases_total": MetricRow("counter", ("kind",), "Places that the watchdog had to give back: each is a fault."),
    "mimi_window_read_bytes": MetricRow("gauge", (), "Bytes of weights read again from the model's file."),
    "mimi_window_hits": MetricRow("gauge", (), "Layers that the tensor window had ready when a step asked."),
    "mimi_window_stalls": MetricRow("gauge", (), "Layers that a step had to wait for."),
    "mimi_window_stall_seconds": MetricRow("gauge", (), "Time that steps waited for layers."),
    "mimi_window_failed_loads": MetricRow("gauge", (), "Reads of layers that failed."),
    "mimi_window_resident_bytes": MetricRow("gauge", (), "Weights that stay in memory, under a RAM budget."),
    "mimi_window_streamed_bytes": MetricRow("gauge", (), "Weights that pass through the tensor window."),
    "mimi_window_major_faults": MetricRow("gauge", (), "Pages that the process had to fetch from a disk, under a RAM budget."),
}
