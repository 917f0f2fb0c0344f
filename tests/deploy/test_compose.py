"""deploy/compose, as Docker Compose itself reads it; and the parts of it that can be tried without Docker."""

from __future__ import annotations

import ipaddress
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from server.process import longest_stop_s
from server.settings import ENVIRONMENT_PREFIX, Settings
from tests.e2e.certificate import make_certificate
from tests.tools import tool

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE = DEPLOY / "compose" / "compose.yaml"
VARIABLES = {
    "MIMI_API_KEYS": "one,two",
    "MIMI_SCRAPE_KEY": "three",
    "MIMI_SECRET": "correct horse battery staple",
    "MIMI_TLS_FOLDER": "/etc/tls",
    "GRAFANA_PASSWORD": "four",
}


def compose(variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [tool("docker-compose", "pip install '.[dev]'"), "--file", str(COMPOSE), "config", "--format", "json"]
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"} | variables
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    done = compose(VARIABLES)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["services"]


@pytest.mark.parametrize("name", VARIABLES)
def test_what_must_be_said_is_asked_for(name: str):
    done = compose({key: value for key, value in VARIABLES.items() if key != name})
    assert done.returncode != 0
    assert name in done.stderr


def test_the_service_is_told_what_it_understands(services):
    server = services["server"]
    settings = {name.removeprefix(ENVIRONMENT_PREFIX).lower(): value for name, value in server["environment"].items()}
    read = Settings(**settings)
    assert read.api_key_list == ("one", "two", "three")
    assert read.deny_handshakes
    assert server["deploy"]["replicas"] == 3
    assert services["redis"]["command"][0] == "redis-server"
    assert read.snapshot_store == "redis://redis:6379/0"
    grace_s = int(re.fullmatch(r"(\d+)s", server["stop_grace_period"])[1])
    assert grace_s > longest_stop_s(read)


def test_proxies_that_are_believed_are_on_the_network_inside():
    done = json.loads(compose(VARIABLES | {"MIMI_SUBNET": "172.29.0.0/24"}).stdout)
    (inside,) = done["networks"]["inside"]["ipam"]["config"]
    trusted = done["services"]["server"]["environment"]["MIMI_TRUSTED_PROXIES"]
    assert ipaddress.ip_network(trusted) == ipaddress.ip_network(inside["subnet"])
    assert all(set(one["networks"]) == {"inside"} for one in done["services"].values())


def test_containers_are_held_tight_and_pinned(services):
    for name, one in services.items():
        assert one["cap_drop"] == ["ALL"], name
        assert one["security_opt"] == ["no-new-privileges:true"], name
        assert one.get("read_only", False) or name == "prometheus", name
        assert one["image"] == "mimi-server" or re.search(r":v?\d+\.\d+\.\d+", one["image"]), name
        for port in one.get("ports", []):
            assert name == "proxy" or port["host_ip"] == "127.0.0.1", name


def test_files_that_are_mounted_are_there(services):
    mounted = [volume for one in services.values() for volume in one.get("volumes", []) if volume["type"] == "bind"]
    ours = [volume for volume in mounted if volume["source"] != VARIABLES["MIMI_TLS_FOLDER"]]
    assert len(ours) == 8
    assert all(Path(volume["source"]).is_file() and volume["read_only"] for volume in ours)


def test_nginx_takes_the_files_as_they_are_mounted(tmp_path: Path, services):
    """Only the name of the replicas, which Docker's name server knows, is another."""
    for volume in services["proxy"]["volumes"]:
        if volume["source"] != VARIABLES["MIMI_TLS_FOLDER"]:
            shutil.copy(volume["source"], tmp_path / Path(volume["target"]).relative_to("/etc/mimi"))
    upstream = tmp_path / "upstream.conf"
    upstream.write_text(upstream.read_text().replace("server server:", "server 127.0.0.1:"))
    (tmp_path / "tls").mkdir()
    cert, key = make_certificate(tmp_path, "proxy")
    Path(cert).rename(tmp_path / "tls" / "cert.pem")
    Path(key).rename(tmp_path / "tls" / "key.pem")
    command = [tool("nginx", "apt-get install nginx"), "-t", "-p", f"{tmp_path}/", "-c", str(tmp_path / "nginx.conf")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "test is successful" in done.stderr


def test_envoy_takes_its_file(tmp_path: Path):
    cert, key = make_certificate(tmp_path, "proxy")
    text = (DEPLOY / "proxy" / "envoy.yaml").read_text()
    text = text.replace("/etc/mimi/tls/cert.pem", cert).replace("/etc/mimi/tls/key.pem", key)
    (tmp_path / "envoy.yaml").write_text(text)
    command = [tool("envoy", "pip install '.[dev]'"), "--mode", "validate", "--config-path", str(tmp_path / "envoy.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert not re.search(r"deprecated|unknown field", done.stderr, re.I), done.stderr


def test_both_proxies_are_as_patient_and_take_bodies_as_large_as_the_service():
    nginx = (DEPLOY / "proxy" / "nginx.conf").read_text()
    assert set(re.findall(r"proxy_(?:read|send)_timeout (\w+);", nginx)) == {"1h"}
    body_mb = int(re.search(r"client_max_body_size (\d+)m;", nginx)[1])
    assert body_mb << 20 == Settings.model_fields["max_body_bytes"].default
    envoy = (DEPLOY / "proxy" / "envoy.yaml").read_text()
    assert set(re.findall(r"idle_timeout: (\w+)", envoy)) == {"3600s"}
    assert Settings.model_fields["ping_interval_ms"].default < 60_000


def test_every_yaml_is_tidy():
    command = [tool("yamllint", "pip install '.[dev]'"), "--strict", "--config-data", YAML_STYLE, str(DEPLOY)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "")


YAML_STYLE = yaml.safe_dump(
    {
        "extends": "default",
        "rules": {"line-length": {"max": 300}, "document-start": "disable", "comments": {"min-spaces-from-content": 1}},
    }
)
