"""Load on a service: paced sessions, each with audio of its own, every code checked against the library.

    python tests/bench/load.py --model MODEL [--url URL] [--sessions N] [--seconds S] ...

Without ``--url`` it starts a service of its own. Each session's frames are due at a phase of its own, drawn by the seed. Latency
counts from when a frame was due, so that a client that is late itself makes the figures worse, never better; how late it was is
told beside. The codes are computed first, in a batch, and kept in the temporary folder for the next run. Exit status 1 if a code
was wrong or a frame was lost.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from different_audio import audio_bank, expected_codes, frame_choice
from load_report import LoadReport, print_report
from load_session import LoadSession
from service_process import ServiceProcess, running_service

from codec_core import CodecModel
from codec_core.cli.report import progress_bar

FRAME_S: Final = 0.08


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", required=True, help="the model that the service runs: a file or a name")
    parser.add_argument("--numerics", help="those that the service runs under; without it, the file's")
    parser.add_argument("--url", help="a service that runs; without it, one is started on this machine")
    parser.add_argument("--serve-options", default="", help="options for the service that is started, in one text")
    parser.add_argument("--key", help="a key of the service")
    parser.add_argument("--sessions", type=int, default=16, help="sessions that are tried")
    parser.add_argument("--admitted", type=int, help="most of them that are expected to get in; without it, all")
    parser.add_argument("--seconds", type=float, default=60, help="how long every session sends")
    parser.add_argument("--levels", type=int, default=8)
    parser.add_argument("--ramp", type=float, default=0, help="seconds over which the sessions start, one by one")
    parser.add_argument("--together", action="store_true", help="all frames are due at one time; without it, each session at its own")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", help="a file for the result; - for standard output instead of the table")
    return parser.parse_args()


def prepare(arguments: argparse.Namespace) -> Iterator[LoadSession]:
    """Compute what every session sends and shall get; sessions take these in the order in which they are let in."""
    frames = round(arguments.seconds / FRAME_S)
    bank = audio_bank()
    messages = [frame.tobytes() for frame in bank]
    sessions = arguments.admitted or arguments.sessions
    choices = np.stack([frame_choice(index, frames, len(bank), arguments.seed) for index in range(sessions)])
    model = CodecModel.open(arguments.model, arguments.numerics, threads=2)
    with progress_bar("computing the codes") as progress:
        codes = expected_codes(model, arguments.levels, choices, bank, progress)
    for index in range(sessions):
        yield LoadSession(messages, choices[index], np.ascontiguousarray(codes[:, index]))


async def run_sessions(url: str, arguments: argparse.Namespace, prepared: list[LoadSession]) -> LoadReport:
    """Start every session at its time, spread over a frame's time or over the ramp, and wait for all."""
    report = LoadReport(arguments.sessions)
    waiting = iter(prepared)
    phases_s = np.random.default_rng(arguments.seed).uniform(0, FRAME_S, arguments.sessions)
    if arguments.together:
        phases_s[:] = 0
    start_s = time.monotonic() + 0.5
    spread_s = max(arguments.ramp, FRAME_S)
    tasks = [
        asyncio.create_task(one_session(url, arguments, waiting, report, start_s + spread_s * index / arguments.sessions, phase_s))
        for index, phase_s in enumerate(phases_s)
    ]
    await asyncio.gather(*tasks)
    return report


async def one_session(
    url: str, arguments: argparse.Namespace, waiting: Iterator[LoadSession], report: LoadReport, at_s: float, phase_s: float
) -> None:
    await asyncio.sleep(at_s - time.monotonic())
    try:
        async with LoadSession.connected(url, arguments.levels, arguments.key) as (connection, refusal):
            if refusal is not None:
                report.refused(refusal)
                return
            session = next(waiting, None)
            if session is None:
                raise SystemExit("more sessions were let in than --admitted says")
            await session.run(connection, report, phase_s)
    except OSError as cause:
        report.refused(f"connection: {cause.strerror or cause}")


def measured(arguments: argparse.Namespace, url: str, service: ServiceProcess | None, prepared: list[LoadSession]) -> Any:
    """Run the load and add what the system says about both sides."""
    gc.collect()
    gc.freeze()
    started_s, before_s = time.monotonic(), service.cpu_s() if service else 0.0
    report = asyncio.run(run_sessions(url, arguments, prepared))
    elapsed_s = time.monotonic() - started_s
    usage = resource.getrusage(resource.RUSAGE_SELF)
    result = report.result() | {
        "seed": arguments.seed,
        "levels": arguments.levels,
        "seconds": arguments.seconds,
        "client_cpu_percent": 100 * (usage.ru_utime + usage.ru_stime - CPU_BEFORE_S[0]) / elapsed_s,
    }
    if service:
        result["service_cpu_percent"] = 100 * (service.cpu_s() - before_s) / elapsed_s
        result["service_resident_bytes"] = service.resident_bytes()
    return result


CPU_BEFORE_S: Final[npt.NDArray[np.float64]] = np.zeros(1)
"""Processor time of this process before the load began."""


def main() -> int:
    arguments = parse_arguments()
    prepared = list(prepare(arguments))
    usage = resource.getrusage(resource.RUSAGE_SELF)
    CPU_BEFORE_S[0] = usage.ru_utime + usage.ru_stime
    if arguments.url:
        result = measured(arguments, arguments.url, None, prepared)
    else:
        numerics = ["--numerics", arguments.numerics] if arguments.numerics else []
        with running_service(arguments.model, [*numerics, *arguments.serve_options.split()]) as service:
            result = measured(arguments, service.url, service, prepared)
    if arguments.json == "-":
        json.dump(result, sys.stdout, indent=2)
        print()
    else:
        print_report(result)
        if arguments.json:
            Path(arguments.json).write_text(json.dumps(result, indent=2) + "\n")
    return 1 if result["wrong_frames"] or result["lost_frames"] else 0


if __name__ == "__main__":
    sys.exit(main())
