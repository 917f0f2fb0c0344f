"""How a model under a RAM budget does beside a plain read of its file: ``python tests/bench/tensor_window.py MODEL BUDGET``.

Prints, round by round, the rate of weights read while encoding and that of a plain sequential read by direct I/O just before
and after; at the end the peak of the process's memory beside what it should be. Nothing else should run on the machine.
"""

from __future__ import annotations

import argparse
import mmap
import os
import time
from pathlib import Path

import numpy as np

from codec_core import CodecModel
from codec_core.window import WindowStats, parse_budget

CHUNK_BYTES = 4 << 20
PROCESS_BYTES = 100 * 10**6
"""What the interpreter, its libraries and the activations of a step may take."""


def plain_read_bytes_per_s(path: str, seconds: float) -> float:
    """Read the file from end to end, again and again, past the system's cache."""
    descriptor, room = os.open(path, os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, CHUNK_BYTES)
    offset = total = 0
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        got = os.preadv(descriptor, [room], offset)
        total += got
        offset = offset + CHUNK_BYTES if got == CHUNK_BYTES else 0
    taken_s = time.perf_counter() - start
    os.close(descriptor)
    return total / taken_s


def peak_bytes() -> int:
    """Return the most memory this process has had at once."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def counters(model: CodecModel) -> WindowStats:
    stats = model.window_stats
    if stats is None:
        raise SystemExit("all weights fit into this budget")
    return stats


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("budget", type=parse_budget)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    given = parser.parse_args()
    model = CodecModel.open(given.model, ram_budget_bytes=given.budget)
    session, path = model.encoder(), model.info.path
    frame = (np.random.default_rng(1).standard_normal(model.info.frame_samples) * 0.2).astype(np.float32)
    session.encode(frame)
    before = plain_read_bytes_per_s(path, given.seconds / 2)
    for _ in range(given.rounds):
        first, start, frames = counters(model), time.perf_counter(), 0
        while time.perf_counter() - start < given.seconds or frames < 2:
            session.encode(frame)
            frames += 1
        taken_s = time.perf_counter() - start
        read = (counters(model).bytes_read - first.bytes_read) / taken_s
        after = plain_read_bytes_per_s(path, given.seconds / 2)
        ratio = read / ((before + after) / 2)
        print(f"window {read / 1e6:.0f} MB/s, plain {before / 1e6:.0f} and {after / 1e6:.0f} MB/s: {ratio:.2f}", end="; ")
        print(f"{1000 * taken_s / frames:.0f} ms a frame")
        before = after
    peak, allowed = peak_bytes(), given.budget + session.state_bytes + PROCESS_BYTES
    print(f"peak {peak / 1e6:.0f} MB of {allowed / 1e6:.0f} MB: budget, state and {PROCESS_BYTES / 1e6:.0f} MB")
    print(counters(model))


if __name__ == "__main__":
    main()
