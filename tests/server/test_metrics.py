from __future__ import annotations

import re

from server.metrics import CONTENT_TYPE, Metrics
from server.metrics_table import METRICS


def samples(metrics: Metrics) -> dict[str, float]:
    lines = [line for line in metrics.text().decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_the_table_is_what_is_served():
    text = Metrics().text().decode()
    served = set(re.findall(r"^# TYPE (mimi_\w+) (\w+)$", text, re.M))
    assert served == {(name, row.kind) for name, row in METRICS.items()}
    assert "process_cpu_seconds_total" in text
    assert CONTENT_TYPE.startswith("text/plain")


def test_rows_are_of_use():
    for name, row in METRICS.items():
        assert row.help.endswith("."), name
        assert (row.kind == "counter") == name.endswith("_total"), name
        assert (row.kind == "histogram") == bool(row.buckets), name
        assert list(row.buckets) == sorted(set(row.buckets)), name


def test_services_do_not_share_counts():
    first, second = Metrics(), Metrics()
    first.admitted("stream")
    assert samples(first)['mimi_admissions_total{kind="stream"}'] == 1
    assert 'mimi_admissions_total{kind="stream"}' not in samples(second)


def test_frames_and_steps_are_counted_by_direction():
    metrics = Metrics()
    metrics.step_done("encode_batch", 5, 0.04)
    metrics.frame_done("encode_batch", 0.05, -0.03, refused=False)
    metrics.frame_done("decode_batch", 0.2, 0.12, refused=False)
    metrics.frame_done("decode_batch", 0.2, 0.12, refused=True)
    found = samples(metrics)
    assert found['mimi_batch_sessions_bucket{le="4.0",step="encode"}'] == 0
    assert found['mimi_batch_sessions_bucket{le="6.0",step="encode"}'] == 1
    assert found["mimi_busy_seconds_total"] == 0.04
    assert found['mimi_frames_total{step="encode"}'] == found['mimi_frames_total{step="decode"}'] == 1
    assert found['mimi_refused_frames_total{step="decode"}'] == 1
    assert found['mimi_deadline_misses_total{step="decode"}'] == 1
    assert 'mimi_deadline_misses_total{step="encode"}' not in found
    assert found['mimi_frame_lateness_seconds_sum{step="decode"}'] == 0.12
    assert found['mimi_frame_latency_seconds_bucket{le="0.08",step="encode"}'] == 1


def test_states_are_asked_for_when_somebody_looks():
    metrics, waiting = Metrics(), [3]
    metrics.observe("mimi_waiting_frames", lambda: waiting[0])
    metrics.observe("mimi_sessions", lambda: 7, kind="stream")
    assert samples(metrics)["mimi_waiting_frames"] == 3
    waiting[0] = 0
    found = samples(metrics)
    assert found["mimi_waiting_frames"] == 0
    assert found['mimi_sessions{kind="stream"}'] == 7


def test_every_other_call_has_its_metric():
    metrics = Metrics()
    metrics.describe(**dict.fromkeys(METRICS["mimi_info"].labels, "x"))
    metrics.set_ready("store", passed=False)
    metrics.refused("handshake", "handshake_rate")
    metrics.dropped("request_timeout")
    metrics.resumed("ok")
    metrics.received("http", 10)
    metrics.sent("websocket", 20)
    metrics.error("http", "payload")
    metrics.answered("GET", 200)
    metrics.audited()
    metrics.leaked_lease("stream")
    found = samples(metrics)
    assert found['mimi_ready{check="store"}'] == 0
    assert found['mimi_refusals_total{code="handshake_rate",kind="handshake"}'] == 1
    assert found['mimi_dropped_connections_total{code="request_timeout"}'] == 1
    assert found['mimi_resumes_total{outcome="ok"}'] == 1
    assert found['mimi_received_bytes_total{transport="http"}'] == 10
    assert found['mimi_sent_bytes_total{transport="websocket"}'] == 20
    assert found['mimi_errors_total{code="payload",transport="http"}'] == 1
    assert found['mimi_http_requests_total{method="GET",status="200"}'] == 1
    assert found["mimi_audits_total"] == found['mimi_leaked_leases_total{kind="stream"}'] == 1
