"""Abuse: healthy sessions go on, code for code and in time, while peers do everything that a service must refuse.

    python tests/bench/abuse.py [--seconds 60] [--model MODEL] [--sessions N] [--seed N] ...

The sessions run by themselves first, then beside the peers of ``abuse_peers.py``. Exit status 1 if a code was wrong, a frame
lost or a session ended, if a refusal that a peer was told of is not counted under its name in ``/metrics``, or if memory or
places did not come back.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import secrets
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final

from load import prepare, run_sessions
from load_report import LoadReport
from outcome import tell
from service_process import ServiceProcess, running_service

PEERS: Final = Path(__file__).with_name("abuse_peers.py")
ATTEMPTS_FRAMES: Final = 100_000
MEMORY_GROWTH_BYTES: Final = 96 << 20
SETTLE_S: Final = 20.0
COUNTERS: Final = ("mimi_errors_total", "mimi_refusals_total", "mimi_dropped_connections_total")
SERVE_OPTIONS: Final = {
    "admission": "count",
    "max-connections": 200,
    "max-sessions": 24,
    "max-address-handshakes-per-s": 20,
    "request-timeout-ms": 1_000,
    "body-timeout-ms": 1_000,
    "hello-timeout-ms": 500,
    "idle-timeout-ms": 2_000,
    "resume-grace-ms": 500,
    "lag-limit-ms": 600_000,
    "log-level": "error",
}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="default", help="a file or a name")
    parser.add_argument("--seconds", type=float, default=60, help="of abuse; a third of it the sessions run alone before")
    parser.add_argument("--sessions", type=int, default=4, help="healthy ones")
    parser.add_argument("--levels", type=int, default=8)
    parser.add_argument("--garbage-frames", type=int, default=ATTEMPTS_FRAMES)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def metrics(service: ServiceProcess) -> dict[str, float]:
    with urllib.request.urlopen(f"{service.url}/metrics") as answer:
        lines = [line for line in answer.read().decode().splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def counted(found: dict[str, float]) -> Counter[str]:
    """Sum the refusals by code, however they were given; one that two counters know counts once."""
    by_counter: dict[str, Counter[str]] = {name: Counter() for name in COUNTERS}
    for name, value in found.items():
        code = re.search(r'code="(\w+)"', name)
        if code and name.partition("{")[0] in by_counter:
            by_counter[name.partition("{")[0]][code[1]] += int(value)
    total: Counter[str] = Counter()
    for counter in by_counter.values():
        total |= counter
    return total


def healthy(service: ServiceProcess, arguments: argparse.Namespace, seconds: float) -> Coroutine[Any, Any, LoadReport]:
    """Prepare the sessions, which takes time; what is returned runs them for so long, and compares every code."""
    settings = argparse.Namespace(
        model=arguments.model,
        numerics=None,
        seconds=seconds,
        sessions=arguments.sessions,
        admitted=None,
        levels=arguments.levels,
        ramp=0.0,
        together=False,
        seed=arguments.seed,
        key=None,
    )
    return run_sessions(service.url, settings, list(prepare(settings)))


async def abused(service: ServiceProcess, arguments: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run the sessions beside the peers; returns what both say."""
    frames, seconds = str(arguments.garbage_frames), str(arguments.seconds)
    command = [sys.executable, str(PEERS), str(service.port), seconds, str(arguments.seed), frames]
    running = asyncio.create_task(healthy(service, arguments, arguments.seconds))
    # They are let in before the crowd comes, which has the same address.
    await asyncio.sleep(1.0)
    peers = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    (output, _), sessions = await asyncio.gather(peers.communicate(), running)
    if peers.returncode != 0:
        raise SystemExit("the peers failed, which says nothing of the service")
    return sessions.result(), json.loads(output)


def settled(service: ServiceProcess) -> dict[str, float]:
    """Wait until no place is taken, and return the metrics."""
    deadline_s = time.monotonic() + SETTLE_S
    while True:
        found = metrics(service)
        places = found.get('mimi_sessions{kind="stream"}', 0) + found.get('mimi_sessions{kind="conversion"}', 0)
        if places + found["mimi_parked_sessions"] == 0 or time.monotonic() > deadline_s:
            return found
        time.sleep(0.2)


def failures(service: ServiceProcess, alone: dict[str, Any], result: dict[str, Any]) -> list[str]:
    found = []
    for name, sessions in (("alone", alone), ("abused", result["sessions"])):
        wrong = {
            key: sessions[key] for key in ("wrong_frames", "lost_frames", "ended_by_the_service", "refusals") if sessions[key]
        }
        found += [f"healthy sessions {name}: {wrong}"] if wrong else []
    for code, told in result["told"].items():
        if result["counted"].get(code, 0) < told:
            found.append(f"{code}: peers were told of {told}, {result['counted'].get(code, 0)} are counted")
    found += [f"nobody was refused as {code}" for code in result["never_told"]]
    if result["resident_bytes"] > result["resident_bytes_before"] + MEMORY_GROWTH_BYTES:
        found.append(f"{result['resident_bytes']} bytes of memory, {result['resident_bytes_before']} before")
    if result["open_files"] > result["open_files_before"] + 2:
        found.append(f"{result['open_files']} open files, {result['open_files_before']} before")
    if "Traceback" in service.log:
        found.append(service.log)
    return found


async def run(arguments: argparse.Namespace) -> dict[str, Any]:
    options = [part for name, value in SERVE_OPTIONS.items() for part in (f"--{name}", str(value))]
    with running_service(arguments.model, options) as service:
        alone = (await healthy(service, arguments, arguments.seconds / 3)).result()
        before = await asyncio.to_thread(settled, service)
        facts: dict[str, Any] = {"resident_bytes_before": service.resident_bytes(), "open_files_before": service.open_files()}
        sessions, peers = await abused(service, arguments)
        after = await asyncio.to_thread(settled, service)
        result = facts | {
            "seed": arguments.seed,
            "sessions": sessions,
            "latency_ms_alone": alone["latency_ms"],
            "latency_ms": sessions["latency_ms"],
            **peers,
            "counted": dict(counted(after) - counted(before)),
            "resident_bytes": service.resident_bytes(),
            "open_files": service.open_files(),
        }
        result["failures"] = failures(service, alone, result)
        return result


def main() -> int:
    arguments = parse_arguments()
    if arguments.seed is None:
        arguments.seed = secrets.randbits(31)
    result = asyncio.run(run(arguments))
    return tell(result, as_json=arguments.json, unprinted=["sessions"])


if __name__ == "__main__":
    sys.exit(main())
