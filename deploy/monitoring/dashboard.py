"""Makes the Grafana dashboard from the service's own table of metrics: every metric has a panel, and no panel asks for another.

    python deploy/monitoring/dashboard.py > deploy/monitoring/dashboard.json

Wants the service installed. A test compares the committed file with what this prints.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from server.metrics_table import METRICS, MetricRow

ROWS: dict[str, tuple[str, ...]] = {
    "In time": (
        "mimi_realtime_headroom",
        "mimi_late_share",
        "mimi_frame_latency_seconds",
        "mimi_predicted_latency_seconds",
        "mimi_deadline_misses_total",
        "mimi_frame_lateness_seconds",
    ),
    "Streams": (
        "mimi_sessions",
        "mimi_session_capacity",
        "mimi_admissions_total",
        "mimi_refusals_total",
        "mimi_resumes_total",
        "mimi_parked_sessions",
    ),
    "The engine": (
        "mimi_frames_total",
        "mimi_busy_seconds_total",
        "mimi_step_seconds",
        "mimi_batch_sessions",
        "mimi_waiting_frames",
        "mimi_queued_frames",
        "mimi_refused_frames_total",
        "mimi_engine_sessions",
    ),
    "Traffic": (
        "mimi_connections",
        "mimi_dropped_connections_total",
        "mimi_http_requests_total",
        "mimi_errors_total",
        "mimi_received_bytes_total",
        "mimi_sent_bytes_total",
        "mimi_unsent_bytes",
    ),
    "Health": ("mimi_ready", "mimi_audits_total", "mimi_leaked_leases_total", "mimi_info", "mimi_language_info"),
    "The tensor window": tuple(name for name in METRICS if name.startswith("mimi_window_")),
}
QUANTILES = (0.5, 0.99)
WIDTH, HEIGHT, PANELS_IN_A_LINE = 8, 8, 3
CHOSEN = 'job="mimi", instance=~"$instance"'
SOURCE = {"type": "prometheus", "uid": "${source}"}


def queries(name: str, row: MetricRow) -> list[tuple[str, str]]:
    """Say what to ask Prometheus about a metric: expressions, each with the legend of its lines."""
    labels = " ".join(f"{{{{{label}}}}}" for label in row.labels)
    legend = f"{{{{instance}}}} {labels}".strip()
    if row.kind == "gauge":
        return [(f"{name}{{{CHOSEN}}}", legend)]
    by = ", ".join(("instance", *row.labels))
    if row.kind == "counter":
        return [(f"sum by ({by}) (rate({name}{{{CHOSEN}}}[$__rate_interval]))", legend)]
    rates = f"sum by (le, {by}) (rate({name}_bucket{{{CHOSEN}}}[$__rate_interval]))"
    return [(f"histogram_quantile({share}, {rates})", f"{legend} p{share * 100:.0f}") for share in QUANTILES]


def unit(name: str, row: MetricRow) -> str:
    """Name Grafana's unit of what :func:`queries` asks for."""
    if name.endswith("_bytes_total"):
        return "Bps"
    if name.endswith(("_seconds_total", "_headroom", "_share")):
        return "percentunit"
    if name.endswith("_seconds"):
        return "s"
    if name.endswith("_bytes"):
        return "bytes"
    return "ops" if row.kind == "counter" else "short"


def panel(name: str, number: int, left: int, top: int) -> dict[str, Any]:
    """Make the panel of one metric."""
    row = METRICS[name]
    targets = [
        {"refId": chr(ord("A") + index), "datasource": SOURCE, "expr": expression, "legendFormat": legend}
        for index, (expression, legend) in enumerate(queries(name, row))
    ]
    return {
        "id": number,
        "type": "timeseries",
        "title": name,
        "description": row.help,
        "datasource": SOURCE,
        "gridPos": {"x": left, "y": top, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {
            "defaults": {"unit": unit(name, row), "min": None if name.endswith("_headroom") else 0},
            "overrides": [],
        },
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": targets,
    }


def panels() -> list[dict[str, Any]]:
    """Lay all rows out."""
    made: list[dict[str, Any]] = []
    top = 0
    for title, names in ROWS.items():
        grid = {"x": 0, "y": top, "w": WIDTH * PANELS_IN_A_LINE, "h": 1}
        made.append({"id": len(made) + 1, "type": "row", "title": title, "collapsed": False, "gridPos": grid, "panels": []})
        top += 1
        for index, name in enumerate(names):
            line, column = divmod(index, PANELS_IN_A_LINE)
            made.append(panel(name, len(made) + 1, column * WIDTH, top + line * HEIGHT))
        top += -(-len(names) // PANELS_IN_A_LINE) * HEIGHT
    return made


def variable(name: str, kind: str, query: str, **more: object) -> dict[str, Any]:
    """Make a choice at the top of the dashboard."""
    return {"name": name, "type": kind, "query": query, "refresh": 2, **more}


def dashboard() -> dict[str, Any]:
    """Make the whole."""
    instances = {"datasource": SOURCE, "includeAll": True, "multi": True, "allValue": ".*", "label": "replica"}
    return {
        "uid": "mimi",
        "title": "Mimi",
        "description": "Live neural audio codes. Made by deploy/monitoring/dashboard.py.",
        "tags": ["mimi"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [
                variable("source", "datasource", "prometheus", label="source"),
                variable("instance", "query", 'label_values(mimi_info{job="mimi"}, instance)', **instances),
            ]
        },
        "annotations": {"list": []},
        "panels": panels(),
    }


if __name__ == "__main__":
    json.dump(dashboard(), sys.stdout, indent=1)
    print()
