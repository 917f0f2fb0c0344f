"""How a language model much larger than its RAM budget does: ``python tests/bench/language_window.py``.

Makes a model of the published 7B shapes in a temporary folder (8.2 GB, removed at the end), steps one stream of it under a
budget and prints, round by round, the rate of weights read beside that of a plain sequential read of the file by direct I/O
just before and after; what a prompt of 64 steps takes; and the peak of the process's memory beside what it may be. Exit status
1 where the rate is below 0.8 of the plain one in all rounds, or memory beyond what it may be. ``--model`` takes a file made
before, as tests/bench/large_language_model.py makes it. Nothing else should run on the machine.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import numpy as np
from tensor_window import peak_bytes, plain_read_bytes_per_s

from codec_core import LanguageModel, LanguageSession
from codec_core.language_prompt import Prompt
from codec_core.window import LanguageWindowStats, parse_budget

PROCESS_BYTES: Final = 200 * 10**6
"""What the interpreter, its libraries and the activations of a step and of a prompt may take."""
MODEL_BYTES: Final = 9 * 10**9
PROMPT_STEPS: Final = 64
LEAST_SHARE: Final = 0.8
"""Of the plain read's rate, in the best round."""


def made_model(folder: str, context_steps: int) -> Path:
    if shutil.disk_usage(folder).free < 2 * MODEL_BYTES:
        raise SystemExit(f"{folder}: {shutil.disk_usage(folder).free / 1e9:.0f} GB free, expected {2 * MODEL_BYTES / 1e9:.0f}")
    path, start = Path(folder) / "large.gguf", time.perf_counter()
    program = Path(__file__).with_name("large_language_model.py")
    subprocess.run([sys.executable, program, path, "--context-steps", str(context_steps)], check=True)
    print(f"{path.stat().st_size / 1e9:.2f} GB written in {time.perf_counter() - start:.0f} s")
    return path


def counters(model: LanguageModel) -> LanguageWindowStats:
    stats = model.window_stats
    if stats is None:
        raise SystemExit("all weights fit into this budget")
    return stats


def measured_rounds(model: LanguageModel, session: LanguageSession, rounds: int, seconds: float) -> float:
    """Print each round; return the largest share of the plain read's rate."""
    user, shares = np.arange(model.info.user_levels), []
    before = plain_read_bytes_per_s(model.info.path, seconds / 2)
    for _ in range(rounds):
        first, start, steps = counters(model), time.perf_counter(), 0
        while time.perf_counter() - start < seconds:
            session.step(user + steps)
            steps += 1
        taken_s = time.perf_counter() - start
        read = (counters(model).bytes_read - first.bytes_read) / taken_s
        after = plain_read_bytes_per_s(model.info.path, seconds / 2)
        shares.append(read / ((before + after) / 2))
        print(f"window {read / 1e6:.0f} MB/s, plain {before / 1e6:.0f} and {after / 1e6:.0f} MB/s: {shares[-1]:.2f}", end="; ")
        print(f"{taken_s / steps:.2f} s a step, of which {stalled_ms(first, counters(model)) / 10 / taken_s:.0f} % waiting")
        before = after
    return max(shares)


def stalled_ms(first: LanguageWindowStats, last: LanguageWindowStats) -> float:
    return last.stall_ms - first.stall_ms


def measured_prompt(model: LanguageModel, session: LanguageSession) -> None:
    rng, info = np.random.default_rng(3), model.info
    codes = rng.integers(0, info.codebook_entries, (PROMPT_STEPS, info.own_levels + info.user_levels))
    own, user = np.split(codes, [info.own_levels], axis=1)
    first, start = counters(model), time.perf_counter()
    session.prompt(Prompt(rng.integers(0, info.text_entries, PROMPT_STEPS), own, user))
    taken_s = time.perf_counter() - start
    read = counters(model).bytes_read - first.bytes_read
    print(f"a prompt of {PROMPT_STEPS} steps: {taken_s:.1f} s, {read / 1e9:.2f} GB read")


def measure(path: Path, budget: int, rounds: int, seconds: float) -> bool:
    start = time.perf_counter()
    model = LanguageModel.open(path, ram_budget_bytes=budget)
    session = model.session()
    print(f"opened and checked in {time.perf_counter() - start:.1f} s")
    session.step(np.zeros(model.info.user_levels, int))
    share = measured_rounds(model, session, rounds, seconds)
    measured_prompt(model, session)
    peak, allowed = peak_bytes(), budget + session.state_bytes + PROCESS_BYTES
    print(f"peak {peak / 1e6:.0f} MB of {allowed / 1e6:.0f} MB: budget, state and {PROCESS_BYTES / 1e6:.0f} MB")
    print(counters(model))
    return share >= LEAST_SHARE and peak <= allowed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--budget", type=parse_budget, default=1 << 30)
    parser.add_argument("--context-steps", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = given.model or made_model(folder, given.context_steps)
        return 0 if measure(path, given.budget, given.rounds, given.seconds) else 1


if __name__ == "__main__":
    sys.exit(main())
