"""Chaos: streams go on, answer for answer, whatever happens to their connections and to the service.

    python tests/bench/chaos.py [--seconds 1800] [--model MODEL] [--seed N] ...

Streams run through a proxy that cuts connections, lets them fall silent and slows them down, beside peers that misbehave. First
the service is restarted again and again, by SIGTERM and by ``kill -9``; then it lives on, so that what it keeps of the dead
shows. Exit status 1 if an answer differed from the library's, a stream failed, or places, connections or memory did not come
back.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import secrets
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from chaos_peers import visit
from chaos_proxy import ChaosProxy
from chaos_sessions import ChaosReport, keep_streaming
from outcome import tell
from service_process import ServiceProcess, running_service

from codec_core import CodecModel

RESTARTING_SHARE: Final = 0.65
SETTLE_S: Final = 20.0
"""On top of the time for which streams stay parked."""
MEMORY_GROWTH_BYTES: Final = 64 << 20
RESTARTS: Final = ("SIGTERM", "SIGKILL")
SERVE_OPTIONS: Final = {
    "checkpoint-interval-ms": 1_000,
    "ping-interval-ms": 500,
    "ping-timeout-ms": 1_500,
    "send-timeout-ms": 1_500,
    "hello-timeout-ms": 1_000,
    "idle-timeout-ms": 20_000,
    "drain-timeout-ms": 300,
    "retry-after-ms": 100,
    "resume-grace-ms": 120_000,
    "log-level": "warning",
}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="default", help="a file or a name")
    parser.add_argument("--seconds", type=float, default=1_800)
    parser.add_argument("--streams", type=int, default=6, help="at the same time")
    parser.add_argument("--stream-seconds", type=float, default=12, help="mean length of a stream")
    parser.add_argument("--restart-seconds", type=float, default=8, help="mean time between restarts")
    parser.add_argument("--fault-seconds", type=float, default=0.7, help="mean time between faults of a connection")
    parser.add_argument("--grace-seconds", type=float, default=20, help="of the service that is not restarted any more")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--serve-options", default="", help="further options for the service, in one text")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


@dataclass
class Chaos:
    """One run: the service, the proxy before it, the streams through that, and what is done to them."""

    arguments: argparse.Namespace
    model: CodecModel
    service: ServiceProcess
    proxy: ChaosProxy
    rng: np.random.Generator
    report: ChaosReport = field(default_factory=ChaosReport)
    faults: Counter[str] = field(default_factory=Counter)
    visits: set[asyncio.Task[None]] = field(default_factory=set)

    async def part(self, number: int, seconds: float, *, restarting: bool) -> None:
        """Run streams for so long, with faults, then without faults until the last of them is finished.

        With restarts it goes on until there was one of each kind, however slow the machine.
        """
        stop = asyncio.Event()
        url = f"ws://127.0.0.1:{self.proxy.port}"
        length_s = min(self.arguments.stream_seconds, seconds)
        streams = [
            asyncio.create_task(
                keep_streaming(url, self.model, [self.arguments.seed, number, index], length_s, report=self.report, stop=stop)
            )
            for index in range(self.arguments.streams)
        ]
        agents = [asyncio.create_task(self._disturb()), asyncio.create_task(asyncio.sleep(seconds))]
        if restarting:
            agents[1:] = [asyncio.create_task(self._restart(seconds))]
        done, _ = await asyncio.wait([*agents, *streams], return_when=asyncio.FIRST_COMPLETED)
        stop.set()
        for agent in agents:
            agent.cancel()
        await asyncio.gather(*agents, *self.visits, return_exceptions=True)
        await asyncio.gather(*streams, *(task for task in done if not task.cancelled()))

    async def _disturb(self) -> None:
        faults = {"cut": self.proxy.cut, "silence": self.proxy.silence, "slow": self._slow_down}
        while True:
            await asyncio.sleep(self.rng.exponential(self.arguments.fault_seconds))
            kind = ("cut", "silence", "slow", "visit")[int(self.rng.choice(4, p=(0.35, 0.2, 0.1, 0.35)))]
            connections = self.proxy.open_connections
            if kind == "visit":
                self._receive_visitor()
            elif connections:
                faults[kind](connections[int(self.rng.integers(len(connections)))])
                self.faults[kind] += 1

    def _slow_down(self, number: int) -> None:
        self.proxy.slow_down(number, float(self.rng.uniform(5_000, 50_000)))

    def _receive_visitor(self) -> None:
        seed = int(self.rng.integers(1 << 32))

        async def count() -> None:
            self.faults[await visit(self.service.port, np.random.default_rng(seed))] += 1

        task = asyncio.create_task(count())
        self.visits.add(task)
        task.add_done_callback(self.visits.discard)

    async def _restart(self, seconds: float) -> None:
        end_s = time.monotonic() + seconds
        rng = np.random.default_rng([self.arguments.seed, 1])
        by = list(RESTARTS)
        rng.shuffle(by)
        while time.monotonic() < end_s or not self.faults.keys() >= set(RESTARTS):
            await asyncio.sleep(self.arguments.restart_seconds * rng.uniform(0.5, 1.5))
            # Once begun it is carried through: the streams that still run need a service.
            await asyncio.shield(asyncio.create_task(self._restarted(by[0], float(rng.uniform(0, 0.5)))))
            by.append(by.pop(0))

    async def live_on(self) -> None:
        """Restart the service once more, as one that lets the dead go sooner."""
        await self._restarted("SIGTERM", 0.0, "--resume-grace-ms", str(round(self.arguments.grace_seconds * 1000)))

    async def _restarted(self, by: str, absent_s: float, *options: str) -> None:
        status = await asyncio.to_thread(self.service.terminate if by == "SIGTERM" else self.service.kill)
        if by == "SIGTERM" and status != 0:
            raise SystemExit(f"the service ended with {status}:\n{self.service.log}")
        await asyncio.sleep(absent_s)
        await asyncio.to_thread(self.service.start, *options)
        self.faults[by] += 1


@dataclass(frozen=True)
class Footprint:
    """What the service holds while nobody uses it."""

    streams: int
    parked: int
    open_files: int
    resident_bytes: int


def footprint(service: ServiceProcess) -> Footprint:
    with urllib.request.urlopen(f"{service.url}/v1/info") as answer:
        load = json.load(answer)["load"]
    return Footprint(load["streams"], load["parked"], service.open_files(), service.resident_bytes())


async def settled(chaos: Chaos, base: Footprint | None) -> Footprint:
    """Wait until nothing is held that was not held before, as long as that may take; return what is held then."""
    deadline_s = time.monotonic() + chaos.arguments.grace_seconds + SETTLE_S
    while True:
        now = await asyncio.to_thread(footprint, chaos.service)
        is_free = now.streams == 0 and (base is None or (now.parked == 0 and now.open_files <= base.open_files))
        if is_free or time.monotonic() > deadline_s:
            return now
        await asyncio.sleep(0.2)


@contextlib.asynccontextmanager
async def chaos(arguments: argparse.Namespace) -> AsyncIterator[Chaos]:
    """Set everything up."""
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(tempfile.TemporaryDirectory(prefix="mimi-chaos-"))
        options = [part for name, value in SERVE_OPTIONS.items() for part in (f"--{name}", str(value))]
        options += ["--snapshot-store", store, *arguments.serve_options.split()]
        secret = {"MIMI_SECRET": secrets.token_hex(16)}
        service = stack.enter_context(running_service(arguments.model, options, secret))
        async with ChaosProxy(service.port) as proxy:
            yield Chaos(arguments, CodecModel.open(arguments.model), service, proxy, np.random.default_rng(arguments.seed))


async def run(arguments: argparse.Namespace) -> dict[str, Any]:
    async with chaos(arguments) as run:
        await run.part(1, arguments.seconds * RESTARTING_SHARE, restarting=True)
        await run.live_on()
        # The first streams fill caches and pools that stay; what they leave is the base.
        await run.part(2, arguments.seconds * 0.1, restarting=False)
        base = await settled(run, None)
        await run.part(3, arguments.seconds * (0.9 - RESTARTING_SHARE), restarting=False)
        end = await settled(run, base)
        failures = [*run.report.wrong_streams, *run.report.failed_streams, *_left_behind(base, end)]
        if "Traceback" in run.service.log:
            failures.append(run.service.log)
        return {
            "seed": arguments.seed,
            "streams": run.report.streams,
            "frames": run.report.frames,
            "repeated_frames": run.report.repeated_frames,
            "faults": dict(run.faults),
            "lines": dict(run.report.notices),
            "base": vars(base),
            "end": vars(end),
            "failures": failures,
        }


def _left_behind(base: Footprint, end: Footprint) -> list[str]:
    found = []
    if end.streams or end.parked:
        found.append(f"{end.streams} streams and {end.parked} parked ones are still held")
    if end.open_files > base.open_files:
        found.append(f"{end.open_files} open files, {base.open_files} before")
    if end.resident_bytes > base.resident_bytes + MEMORY_GROWTH_BYTES:
        found.append(f"{end.resident_bytes} bytes of memory, {base.resident_bytes} before")
    return found


def main() -> int:
    arguments = parse_arguments()
    if arguments.seed is None:
        arguments.seed = secrets.randbits(31)
    print(f"chaos of seed {arguments.seed}", file=sys.stderr, flush=True)
    result = asyncio.run(run(arguments))
    return tell(result, as_json=arguments.json)


if __name__ == "__main__":
    sys.exit(main())
