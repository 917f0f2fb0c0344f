"""The command: options, variables, exit status, and one clear line when it cannot start."""

from __future__ import annotations

import importlib.metadata
import os
import socket
import subprocess
import sys

import httpx
import pytest


def run_command(*options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "server", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **variables}, check=False)


@pytest.mark.parametrize(
    ("options", "variables", "status", "says"),
    [
        (["--host", "0.0.0.0"], {}, 2, "--allow-remote"),
        (["--host", "0.0.0.0"], {"MIMI_API_KEYS": " ,"}, 2, "MIMI_API_KEYS"),
        (["--host", "no.such.host.invalid"], {}, 2, "no.such.host.invalid"),
        (["--max-sessions", "0"], {}, 2, "--max-sessions"),
        ([], {"MIMI_MAX_SESSIONS": "many"}, 2, "MIMI_MAX_SESSIONS"),
        (["--log-level", "loud"], {}, 2, "--log-level"),
        (["--port", "0", "--model", "/no/such/model.gguf"], {}, 1, "/no/such/model.gguf"),
        (["--port", "0", "--model", "nameless"], {}, 1, "nameless"),
        (["--port", "0", "--numerics", "exotic"], {}, 1, "exotic"),
    ],
)
def test_what_cannot_start_says_why_in_one_line(options, variables, status, says):
    done = run_command(*options, **variables)
    assert done.returncode == status
    assert says in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stderr.startswith("error[")
    assert done.stdout == ""


def test_a_port_that_is_taken_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run_command("--port", str(port))
    assert done.returncode == 2
    assert done.stderr.startswith(f"error[setting]: host and port: found 127.0.0.1:{port}: ")
    assert done.stderr.endswith(", expected --port N, or 0 for any free one\n")


def test_an_unknown_option_is_wrong_usage():
    for option in ("--max-session", "--ram-budget-bytes"):
        done = run_command(option, "3")
        assert done.returncode == 2
        assert option in done.stderr


def test_an_option_goes_before_its_variable_and_the_start_is_announced(start_service, monkeypatch, tiny_model):
    monkeypatch.setenv("MIMI_MAX_SESSIONS", "7")
    monkeypatch.setenv("MIMI_MAX_CONVERSIONS", "3")
    service = start_service("--max-sessions", "5")
    limits = httpx.get(f"{service.url}/v1/info").json()["limits"]
    assert (limits["max_sessions"], limits["max_conversions"]) == (5, 3)
    info = tiny_model.info
    assert f"serves on {service.url}" in service.log
    assert f"model {info.name} ({info.weight_class}, {info.levels} levels), {info.numerics} numerics, {info.isa}" in service.log


def test_beyond_loopback_when_told_so(start_service):
    service = start_service("--host", "0.0.0.0", "--allow-remote")
    port = service.url.rsplit(":", 1)[1]
    assert httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == 200


def test_serve_is_a_command_of_mimi():
    entry = next(entry for entry in importlib.metadata.entry_points(group="mimi.commands") if entry.name == "serve")
    assert entry.value == "server.command:command"
    assert callable(entry.load())
