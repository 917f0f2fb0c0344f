"""The proxies of deploy/proxy with their own configuration, before services of this machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import yaml

from tests.tools import tool

PROXY = Path(__file__).parents[2] / "deploy" / "proxy"
START_TIMEOUT_S = 30
START_TRIES = 5


class PortTakenError(Exception):
    """Somebody else took the port meanwhile."""


def nginx_command(folder: Path, port: int, replicas: Sequence[int], certificate: tuple[str, str]) -> list[str]:
    """Lay the two files beside nginx.conf that differ from place to place."""
    program = tool("nginx", "apt-get install nginx")
    shutil.copy(PROXY / "nginx.conf", folder)
    servers = [f"server 127.0.0.1:{replica} max_fails=3 fail_timeout=5s;" for replica in replicas]
    (folder / "upstream.conf").write_text("\n".join(servers))
    cert, key = certificate
    (folder / "tls.conf").write_text(f"listen 127.0.0.1:{port} ssl; ssl_certificate {cert}; ssl_certificate_key {key};")
    # Started by root, its workers would be somebody whom the test's folder does not let in.
    user = ["-g", "user root;"] if os.geteuid() == 0 else []
    return [program, "-p", f"{folder}/", "-c", str(folder / "nginx.conf"), *user]


def envoy_command(folder: Path, port: int, replicas: Sequence[int], certificate: tuple[str, str]) -> list[str]:
    """Put other ports, addresses and certificates into envoy.yaml, and nothing else."""
    program = tool("envoy", "pip install '.[dev]'")
    config = yaml.safe_load((PROXY / "envoy.yaml").read_text())
    listener, cluster = config["static_resources"]["listeners"][0], config["static_resources"]["clusters"][0]
    listener["address"]["socket_address"] |= {"address": "127.0.0.1", "port_value": port}
    tls = listener["filter_chains"][0]["transport_socket"]["typed_config"]["common_tls_context"]["tls_certificates"][0]
    tls["certificate_chain"]["filename"], tls["private_key"]["filename"] = certificate
    addresses = [{"socket_address": {"address": "127.0.0.1", "port_value": replica}} for replica in replicas]
    cluster["load_assignment"]["endpoints"][0]["lb_endpoints"] = [{"endpoint": {"address": one}} for one in addresses]
    path = folder / "envoy.yaml"
    path.write_text(yaml.safe_dump(config))
    return [program, "--config-path", str(path), "--use-dynamic-base-id", "--concurrency", "2", "--log-level", "warning"]


COMMANDS: dict[str, Callable[[Path, int, Sequence[int], tuple[str, str]], list[str]]] = {
    "nginx": nginx_command,
    "envoy": envoy_command,
}


@contextlib.contextmanager
def running_proxy(name: str, folder: Path, replicas: Sequence[int], certificate: tuple[str, str]) -> Iterator[tuple[str, Path]]:
    """Run a proxy before these ports; yields its address, HTTPS, and its log."""
    log = folder / f"{name}.log"
    for _ in range(START_TRIES):
        port = _free_port()
        command = COMMANDS[name](folder, port, replicas, certificate)
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=folder)
        try:
            _wait(process, port, log)
            yield f"https://127.0.0.1:{port}", log
        except PortTakenError:
            continue
        finally:
            process.terminate()
            process.wait(START_TIMEOUT_S)
        return
    raise AssertionError(log.read_text())


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline_s:
        if process.poll() is not None:
            if "in use" in log.read_text():
                raise PortTakenError
            break
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise AssertionError(f"the proxy did not start:\n{log.read_text()}")
