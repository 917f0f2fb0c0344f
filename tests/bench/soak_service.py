"""Paced sessions through a service for hours, and what becomes of its memory and its files."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import time
import urllib.request
from typing import Any, Final

from load import prepare, run_sessions
from load_report import LoadReport
from load_session import LoadSession
from memory_course import MemoryCourse
from service_process import ServiceProcess, running_service

SETTLE_S: Final = 5.0
"""Time for the last connections to be closed."""
LEAK_METRICS: Final = ("mimi_leaked_leases_total", "mimi_engine_sessions", "mimi_sessions", "mimi_queued_frames")
"""All 0 when nobody is served."""


def soak_service(arguments: argparse.Namespace) -> dict[str, Any]:
    """Compute the codes, then run the sessions against a service of its own."""
    arguments.seconds = arguments.hours * 3600
    arguments.admitted = arguments.numerics = arguments.key = None
    arguments.together = False
    prepared = list(prepare(arguments))
    # The streams would otherwise wait for a client that is not coming back.
    options = ["--resume-grace-ms", "0", "--log-level", "warning", *arguments.serve_options.split()]
    with running_service(arguments.model, options) as service:
        return asyncio.run(_soak(arguments, service, prepared))


async def _soak(arguments: argparse.Namespace, service: ServiceProcess, prepared: list[LoadSession]) -> dict[str, Any]:
    memory, started_s, files_before = MemoryCourse(), time.monotonic(), service.open_files()

    async def watch() -> None:
        while True:
            memory.add((time.monotonic() - started_s) / 3600, service.resident_bytes())
            await asyncio.sleep(arguments.sample_seconds)

    watching = asyncio.create_task(watch())
    report = await run_sessions(service.url, arguments, prepared)
    watching.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watching
    held, files_after = await _settled(service, files_before)
    result = report.result()
    del result["course"]
    failures = [*_failures(arguments, report, result), *memory.complaint()]
    failures += [f"{held} is still held"] if held else []
    failures += [f"{files_after} open files, {files_before} before"] if files_after > files_before else []
    failures += [service.log] if "Traceback" in service.log else []
    return result | {
        "seed": arguments.seed,
        "hours": arguments.hours,
        "open_files": [files_before, files_after],
        "resident_mb": memory.shown(),
        "slope_mb_per_hour": memory.slope_mb_per_hour,
        "service_cpu_s": round(service.cpu_s(), 1),
        "failures": failures,
    }


async def _settled(service: ServiceProcess, files_before: int) -> tuple[dict[str, float], int]:
    """Wait until nothing is held that was not held before, but not for ever; return what is held then."""
    deadline_s = time.monotonic() + SETTLE_S
    while True:
        held = {name: value for name, value in _metrics(service).items() if name.startswith(LEAK_METRICS) and value}
        files = service.open_files()
        if (not held and files <= files_before) or time.monotonic() > deadline_s:
            return held, files
        await asyncio.sleep(0.1)


def _failures(arguments: argparse.Namespace, report: LoadReport, result: dict[str, Any]) -> list[str]:
    found = {"wrong frames": report.wrong_frames, "lost frames": report.lost_frames}
    found["sessions refused"] = arguments.sessions - report.admitted
    found["sessions ended by the service"] = sum(result["ended_by_the_service"].values())
    return [f"{count} {name}" for name, count in found.items() if count]


def _metrics(service: ServiceProcess) -> dict[str, float]:
    with urllib.request.urlopen(f"{service.url}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))}
