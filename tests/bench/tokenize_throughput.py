"""How fast ``mimi tokenize`` is beside the engine alone, and beside a plain PyTorch script: all in one run, on the same cores.

    python tests/bench/tokenize_throughput.py --model full.gguf --seconds-of-audio 600
        [--moshi-python VENV/bin/python --checkpoint full.safetensors]

The corpus is made on the spot: WAV files of 24 kHz, 1 to 8 seconds long. Rounds of ``mimi bench`` at batch 16, of
``mimi tokenize`` and of the script take turns, so that what else the machine does hits all alike; figures are medians.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import soundfile

MIMI = Path(sys.executable).with_name("mimi")
RATE_HZ = 24_000


def make_corpus(folder: Path, seconds: float) -> int:
    """Write speech-length files that last so long together; return how many."""
    rng, left, count = np.random.default_rng(7), seconds, 0
    while left > 0:
        samples = int(rng.uniform(1, 8) * RATE_HZ)
        at_s = np.arange(samples) / RATE_HZ
        tone = 0.2 * np.sin(2 * np.pi * (rng.uniform(90, 250) + 30 * at_s) * at_s)
        soundfile.write(folder / f"{count:06d}.wav", tone + 0.03 * rng.standard_normal(samples), RATE_HZ)
        left -= samples / RATE_HZ
        count += 1
    return count


def answer(*command: object) -> dict:
    """Run a command that answers in JSON."""
    done = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def bench_rate(model: str, levels: int, threads: int, seconds: float) -> float:
    """Frames a second of the batched encode alone."""
    found = answer(
        MIMI,
        "bench",
        "--model",
        model,
        "--batch",
        "16",
        "--levels",
        levels,
        "--threads",
        threads,
        "--seconds",
        seconds,
        "--json",
    )
    (encode,) = [row for row in found["results"] if row["direction"] == "encode"]
    return 1000 / encode["ms_per_frame_median"]


def tokenize_rate(corpus: Path, model: str, levels: int, threads: int) -> float:
    """Frames a second of a whole run, without opening the model, as in the other two."""
    with tempfile.TemporaryDirectory() as output:
        found = answer(
            MIMI, "tokenize", corpus, "-o", output, "--format", "npy", "-m", model, "-k", levels, "--threads", threads, "--json"
        )
    return found["frames"] / found["seconds"]


def script_rate(python: str, checkpoint: str, corpus: Path, levels: int, threads: int) -> float:
    """Frames a second of the PyTorch script."""
    with tempfile.TemporaryDirectory() as output:
        found = answer(python, Path(__file__).with_name("moshi_tokenize.py"), checkpoint, corpus, output, levels, threads)
    return found["frames"] / found["seconds"]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="default")
    parser.add_argument("--levels", type=int, default=8)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seconds-of-audio", type=float, default=600)
    parser.add_argument("--bench-seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--moshi-python", help="interpreter of an environment with moshi and soundfile")
    parser.add_argument("--checkpoint", help="the model's checkpoint, for that script")
    return parser.parse_args()


def main() -> None:
    wanted = options()
    folder = Path(tempfile.mkdtemp())
    try:
        files = make_corpus(folder, wanted.seconds_of_audio)
        rates: dict[str, list[float]] = {}
        for _ in range(wanted.rounds):
            common = wanted.levels, wanted.threads
            rates.setdefault("mimi bench, batch 16", []).append(bench_rate(wanted.model, *common, wanted.bench_seconds))
            rates.setdefault("mimi tokenize", []).append(tokenize_rate(folder, wanted.model, *common))
            if wanted.moshi_python:
                rate = script_rate(wanted.moshi_python, wanted.checkpoint, folder, *common)
                rates.setdefault("moshi (PyTorch) script", []).append(rate)
    finally:
        shutil.rmtree(folder)
    print(f"{files} files, {wanted.seconds_of_audio:.0f} s of audio, {wanted.levels} levels, {wanted.threads} threads")
    ours = float(np.median(rates["mimi tokenize"]))
    for name, found in rates.items():
        median = float(np.median(found))
        print(f"{name:24s} {median:8.1f} frames/s {median * 0.08:7.1f} x real time   tokenize / this: {ours / median:.2f}")


if __name__ == "__main__":
    main()
