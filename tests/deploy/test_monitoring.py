"""Alerts and dashboard ask for what the service tells, and say what they should: by Prometheus itself."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from dashboard import ROWS, dashboard

from server.metrics_table import METRICS
from tests.bench.service_process import running_service
from tests.tools import tool

ROOT = Path(__file__).parents[2]
MONITORING = ROOT / "deploy" / "monitoring"
ALERTS = [rule for group in yaml.safe_load((MONITORING / "alerts.yaml").read_text())["groups"] for rule in group["rules"]]
SCALING = yaml.safe_load((ROOT / "deploy" / "kubernetes" / "components" / "autoscaling" / "scaledobject.yaml").read_text())
PROCESS = {"process_open_fds", "process_max_fds"}
TIMEOUT_S = 60


def promtool(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [tool("promtool", "apt-get install prometheus"), *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


def expressions() -> list[str]:
    return [target["expr"] for panel in dashboard()["panels"] for target in panel.get("targets", [])]


def metrics_in(expression: str) -> set[str]:
    return {re.sub(r"_bucket$", "", name) for name in re.findall(r"\b(?:mimi|process)_\w+", expression)}


def test_the_committed_dashboard_is_the_one_that_is_made():
    command = [sys.executable, str(MONITORING / "dashboard.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (MONITORING / "dashboard.json").read_text()


def test_every_metric_has_its_panel():
    shown = [name for names in ROWS.values() for name in names]
    assert sorted(shown) == sorted(METRICS)
    assert set().union(*map(metrics_in, expressions())) == set(METRICS)


def test_alerts_ask_for_metrics_that_there_are():
    for rule in ALERTS:
        named = metrics_in(rule["expr"])
        assert named or rule["expr"].startswith("up{")
        assert named <= set(METRICS) | PROCESS, rule["alert"]


def test_every_alert_is_explained():
    text = (ROOT / "docs" / "operations.md").read_text()
    (block,) = re.findall(r"^\| alert \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.M)
    rows = dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", block, re.M))
    assert rows == {rule["alert"]: rule["labels"]["severity"] for rule in ALERTS}


@pytest.mark.parametrize("name", ["prometheus.yaml", "prometheus-kubernetes.yaml"])
def test_prometheus_takes_its_configurations(name: str):
    done = promtool("check", "config", "--syntax-only", str(MONITORING / name))
    assert done.returncode == 0, done.stderr


def test_alerts_fire_when_they_should():
    done = promtool("test", "rules", str(MONITORING / "alerts_test.yaml"))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_no_alert_goes_untested(tmp_path: Path, rule: dict[str, Any]):
    silent = [one | {"expr": "vector(0) > 1"} if one == rule else one for one in ALERTS]
    (tmp_path / "alerts.yaml").write_text(yaml.safe_dump({"groups": [{"name": "mimi", "rules": silent}]}))
    shutil.copy(MONITORING / "alerts_test.yaml", tmp_path)
    done = promtool("test", "rules", str(tmp_path / "alerts_test.yaml"))
    assert done.returncode != 0
    assert rule["alert"] in done.stdout + done.stderr


def test_scaling_asks_for_as_many_replicas_as_the_streams_need(tmp_path: Path):
    by_name = {trigger["name"]: trigger["metadata"] for trigger in SCALING["spec"]["triggers"]}
    series = {
        'mimi_sessions{kind="stream", instance="a"}': 14,
        'mimi_sessions{kind="stream", instance="b"}': 7,
        'mimi_sessions{kind="conversion", instance="a"}': 4,
        'mimi_session_capacity{instance="a"}': 20,
        'mimi_session_capacity{instance="b"}': 10,
        'mimi_realtime_headroom{instance="a"}': 0.25,
        'mimi_realtime_headroom{instance="b"}': 1,
    }
    expected = {"sessions-by-capacity": 1.4, "realtime-used": 0.75}
    tests = [
        {"expr": by_name[name]["query"], "eval_time": "1m", "exp_samples": [{"labels": "{}", "value": value}]}
        for name, value in expected.items()
    ]
    inputs = [{"series": name, "values": f"{value}x5"} for name, value in series.items()]
    path = tmp_path / "scaling.yaml"
    path.write_text(yaml.safe_dump({"tests": [{"interval": "1m", "input_series": inputs, "promql_expr_test": tests}]}))
    done = promtool("test", "rules", str(path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert {name: one["threshold"] for name, one in by_name.items()} == dict.fromkeys(expected, "0.7")


class Prometheus:
    """One that runs; asked over HTTP."""

    def __init__(self, url: str) -> None:
        self.url = url

    def get(self, path: str, **query: str) -> Any:
        with urllib.request.urlopen(f"{self.url}{path}?{urllib.parse.urlencode(query)}", timeout=TIMEOUT_S) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[Any]:
        return self.get("/api/v1/query", query=expression)["result"]


@contextlib.contextmanager
def running_prometheus(folder: Path, target: str, key: str) -> Iterator[Prometheus]:
    """Run Prometheus with the configuration of deploy/compose; only where to look, how often and the key's file are others."""
    config = yaml.safe_load((MONITORING / "prometheus.yaml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    (scrape,) = config["scrape_configs"]
    del scrape["dns_sd_configs"]
    (folder / "key").write_text(key)
    scrape["authorization"]["credentials_file"] = str(folder / "key")
    scrape["static_configs"] = [{"targets": [target]}]
    shutil.copy(MONITORING / "alerts.yaml", folder)
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    options = {"config.file": folder / "prometheus.yaml", "storage.tsdb.path": folder / "data", "web.listen-address": address}
    program = tool("prometheus", "apt-get install prometheus")
    log = folder / "prometheus.log"
    with log.open("wb") as output:
        process = subprocess.Popen([program, *(f"--{name}={value}" for name, value in options.items())], stderr=output)
    try:
        prometheus, deadline_s = Prometheus(f"http://{address}"), time.monotonic() + TIMEOUT_S
        while True:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline_s, log.read_text()
            with contextlib.suppress(OSError):
                if prometheus.query('count_over_time(up{job="mimi"}[1m]) >= 3'):
                    break
            time.sleep(0.2)
        yield prometheus
    finally:
        process.terminate()
        process.wait()


def test_prometheus_finds_all_of_it_at_a_running_service(tmp_path: Path, tiny_model_path: Path):
    with running_service(tiny_model_path, [], {"MIMI_API_KEYS": "a-key"}) as service:
        request = urllib.request.Request(f"{service.url}/metrics", headers={"Authorization": "Bearer a-key"})
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            text = answer.read().decode()
        assert METRICS.keys() | PROCESS <= set(re.findall(r"^# TYPE (\w+)", text, re.M))
        lint = promtool("check", "metrics", stdin=text)
        assert lint.returncode == 0, lint.stdout + lint.stderr
        with running_prometheus(tmp_path, f"127.0.0.1:{service.port}", "a-key") as prometheus:
            assert [one["value"][1] for one in prometheus.query('up{job="mimi"}')] == ["1"]
            for expression in expressions():
                found = prometheus.query(expression.replace("$__rate_interval", "1m").replace("$instance", ".*"))
                (name,) = metrics_in(expression)
                assert found or METRICS[name].labels, expression
            rules = [rule for group in prometheus.get("/api/v1/rules")["groups"] for rule in group["rules"]]
            assert {rule["name"]: rule["health"] for rule in rules} == dict.fromkeys((one["alert"] for one in ALERTS), "ok")
            assert not prometheus.query('ALERTS{alertstate="firing"}')
