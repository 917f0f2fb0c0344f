"""Memory of ``mimi tokenize`` over one long file.

    python tests/bench/tokenize_memory.py --hours 3 --model tiny.gguf

The file is made on the spot, of zeros, without taking room on the disk. Prints the resident memory in MB as the run goes, each
value the median of a tenth of it; the codes themselves, which stay in memory to the end, are printed beside.
"""

from __future__ import annotations

import argparse
import os
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

MIMI = Path(sys.executable).with_name("mimi")
RATE_HZ = 24_000
PARTS = 10


def write_zeros(path: Path, samples: int) -> None:
    """Write a WAV file of silence, sparse."""
    size = samples * 2
    form = struct.pack("<IHHIIHH", 16, 1, 1, RATE_HZ, RATE_HZ * 2, 2, 16)
    with path.open("wb") as file:
        file.write(b"RIFF" + struct.pack("<I", 36 + size) + b"WAVEfmt " + form + b"data" + struct.pack("<I", size))
        file.truncate(44 + size)


def resident_megabytes(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def watch(*command: object) -> list[float]:
    """Run a command and return its memory, taken five times a second once it has started up."""
    process = subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL)
    taken = []
    time.sleep(2)
    while process.poll() is None:
        taken.append(resident_megabytes(process.pid))
        time.sleep(0.2)
    assert process.returncode == 0
    return [value for value in taken if value > 0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=3)
    parser.add_argument("--model", default="default")
    parser.add_argument("--levels", type=int, default=8)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_zeros(Path(folder) / "long.wav", int(wanted.hours * 3600 * RATE_HZ))
        settings = ("--format", "npy", "--model", wanted.model, "--levels", wanted.levels)
        taken = watch(MIMI, "tokenize", Path(folder) / "long.wav", "-o", Path(folder) / "out", *settings)
    codes = wanted.hours * 45_000 * wanted.levels * 2 / 1e6
    medians = " ".join(f"{np.median(part):.1f}" for part in np.array_split(taken, PARTS))
    print(f"{wanted.hours:g} hours, {wanted.levels} levels, {codes:.1f} MB of codes")
    print(f"resident MB: {medians}; most {max(taken):.1f}")


if __name__ == "__main__":
    main()
