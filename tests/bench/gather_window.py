"""Latency and processor time of paced streams in one process, by number of streams and gather window.

Run as ``python -P tests/bench/gather_window.py MODEL``. Every stream sends a frame each 80 ms at a phase of its own; a frame's
latency is the time from its submission to its codes. What it showed, and what follows, is in docs/operations.md.
"""

from __future__ import annotations

import argparse
import asyncio
import time

import numpy as np

from codec_core import CodecModel
from server.codec_executor import FRAME_MS, CodecExecutor

SEED = 20261130


async def paced_stream(executor: CodecExecutor, session, pcm, phase_s: float, latencies_ms: list[float]) -> None:
    started_s = time.monotonic() + phase_s
    for index, frame in enumerate(pcm):
        await asyncio.sleep(max(started_s + index * FRAME_MS / 1000 - time.monotonic(), 0))
        submitted_s = time.monotonic()
        await executor.encode(session, frame)
        latencies_ms.append((time.monotonic() - submitted_s) * 1000)


async def measure(model: CodecModel, streams: int, gather_ms: float, seconds: float) -> list[float]:
    """Return p50, p99 and longest latency in ms, the share of time the worker was busy, and sessions per batch."""
    rng = np.random.default_rng(SEED)
    frames = int(seconds * 1000 / FRAME_MS)
    pcm = rng.uniform(-0.3, 0.3, (streams, frames, model.info.frame_samples)).astype(np.float32)
    executor = CodecExecutor(model, gather_ms=gather_ms)
    latencies_ms: list[float] = []
    phases_s = rng.uniform(0, FRAME_MS / 1000, streams)
    started_s = time.monotonic()
    sessions = [model.encoder(8) for _ in range(streams)]
    await asyncio.gather(
        *(paced_stream(executor, *stream, latencies_ms) for stream in zip(sessions, pcm, phases_s, strict=True))
    )
    busy = executor.stats.busy_s / (time.monotonic() - started_s)
    batch = executor.stats.frames / executor.stats.batches
    executor.close()
    return [*np.percentile(latencies_ms, [50, 99, 100]), busy, batch]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--streams", default="1,4,8,12")
    parser.add_argument("--gather-ms", default="0,2,5,10,20")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    model = CodecModel.open(given.model, threads=given.threads)
    print(f"{model.info.name}, {model.info.isa}, {given.threads} threads, seed {SEED}")
    print("streams  gather ms   p50 ms   p99 ms   max ms   busy  sessions/batch")
    for streams in map(int, given.streams.split(",")):
        for gather_ms in map(float, given.gather_ms.split(",")):
            p50, p99, longest, busy, batch = asyncio.run(measure(model, streams, gather_ms, given.seconds))
            print(f"{streams:7} {gather_ms:10.0f} {p50:8.1f} {p99:8.1f} {longest:8.1f} {busy:6.2f} {batch:15.2f}")


if __name__ == "__main__":
    main()
