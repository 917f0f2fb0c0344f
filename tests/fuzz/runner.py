"""Runs fuzz targets: makes their seeds, builds those in C++, fuzzes, and says how much of each target's lines was reached.

With ``all`` the seconds are shared by the targets; 0 builds and makes seeds, no more. Exit status 1 if anything was found, or,
with ``--coverage``, if fewer than :data:`LEAST_COVERAGE` of a target's lines were reached.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from fuzz_build import NATIVE, built, line_coverage
from fuzz_targets import ROOT, TARGETS, Target, committed_inputs, load

LEAST_COVERAGE: Final = 85.0
TIMEOUT_S: Final = 10
MEMORY_MB: Final = 2048
MOST_BYTES: Final = {"gguf_reader": 120_000, "checkpoint": 120_000, "audio": 20_000, "session_state": 20_000} | dict.fromkeys(
    ("language_file", "language_source"), 24_000
)
PYTHON_FUZZER: Final = Path(__file__).with_name("fuzz_python.py")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests/fuzz/run", description=__doc__.partition("\n")[0])
    parser.add_argument("target", choices=[*TARGETS, "all", "list"])
    parser.add_argument("seconds", type=float, nargs="?", default=0.0)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--timeout", type=int, default=TIMEOUT_S, help="seconds from which one input counts as a hang")
    parser.add_argument("--coverage", action="store_true", help="run the corpus again and count the lines it reaches")
    return parser.parse_args()


class Run:
    """One target with its folder."""

    def __init__(self, name: str, folder: Path, timeout_s: int) -> None:
        self.name = name
        self.timeout_s = timeout_s
        self.target: Target = load(name)
        self.folder = folder
        self.corpus = folder / name / "corpus"

    def prepare(self) -> None:
        """Build the program, and lay out what fuzzing begins with."""
        started_s = time.monotonic()
        command = self.command()
        self.corpus.mkdir(parents=True, exist_ok=True)
        for data in (*self.target.seeds(), *(path.read_bytes() for path in committed_inputs(self.name))):
            (self.corpus / hashlib.sha1(data).hexdigest()).write_bytes(data)
        words = ("".join(f"\\x{byte:02x}" for byte in word) for word in self.target.DICTIONARY)
        (self.folder / self.name / "dictionary").write_text("".join(f'"{word}"\n' for word in words))
        print(f"{self.name}: {Path(command[0]).name} and seeds in {time.monotonic() - started_s:.0f} s", flush=True)

    def command(self, *, counting: bool = False) -> list[str]:
        if self.name in NATIVE:
            counted = {path for pattern in self.target.COVERED for path in ROOT.glob(pattern)} if counting else set()
            return [str(built(self.name, self.folder, frozenset(counted)))]
        return [sys.executable, str(PYTHON_FUZZER), self.name]

    def fuzz(self, seconds: float) -> bool:
        """Fuzz; tell whether nothing was found."""
        options = [f"-max_total_time={max(1, round(seconds))}", f"-timeout={self.timeout_s}", f"-rss_limit_mb={MEMORY_MB}"]
        options += [f"-max_len={MOST_BYTES.get(self.name, 8_192)}", f"-dict={self.folder / self.name / 'dictionary'}"]
        options += [f"-artifact_prefix={self.folder / self.name}/", "-print_final_stats=1", "-print_funcs=0"]
        options.append(str(self.corpus))
        log = self.folder / self.name / "log"
        started_s = time.monotonic()
        with log.open("w") as file:
            done = subprocess.run(
                [*self.command(), *options], stdout=file, stderr=subprocess.STDOUT, env=self.environment(), check=False
            )
        text = log.read_text(errors="replace")
        executions = re.search(r"stat::number_of_executed_units: +(\d+)", text)
        inputs = sum(1 for _ in self.corpus.iterdir())
        count = int(executions[1]) if executions else 0
        print(f"{self.name}: {time.monotonic() - started_s:.0f} s, {count} executions, {inputs} inputs, ", end="")
        if done.returncode != 0:
            print(f"a finding:\n{text[-4000:]}\nsee {self.folder / self.name}")
            return False
        print("nothing found", flush=True)
        return True

    def environment(self) -> dict[str, str]:
        # What these need is set up by fuzz_targets.
        from tests.fuzz.language_materials import CONFIGS, language_file  # noqa: PLC0415
        from tests.fuzz.materials import folder, model_file  # noqa: PLC0415

        for name in CONFIGS:
            language_file(name)
        return os.environ | {"MIMI_FUZZ_MODEL": str(model_file()), "MIMI_FUZZ_LANGUAGE_MODELS": str(folder())}

    def measure(self) -> bool:
        """Run the corpus once more and print what it reaches; tell whether that is enough."""
        if self.name in NATIVE:
            command = [*self.command(counting=True), "-runs=0", str(self.corpus)]
            lines = line_coverage(command, self.target.COVERED, self.folder / self.name, self.environment())
        else:
            command = [*self.command(), "--coverage", str(self.corpus)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            lines = [(name, int(reached), int(count)) for name, reached, count in map(str.split, done.stdout.splitlines())]
        reached, count = sum(line[1] for line in lines), sum(line[2] for line in lines)
        for line in lines:
            print(f"    {line[0]}: {line[1]} of {line[2]}")
        percent = 100 * reached / count
        print(f"{self.name}: {percent:.1f} % of {count} lines", flush=True)
        return percent >= LEAST_COVERAGE


def main() -> int:
    arguments = parse_arguments()
    if arguments.target == "list":
        print("\n".join(f"{name}: {(load(name).__doc__ or '').partition(chr(10))[0]}" for name in TARGETS))
        return 0
    names = TARGETS if arguments.target == "all" else (arguments.target,)
    with ExitStack() as stack:
        folder = arguments.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mimi-fuzz-")))
        runs = [Run(name, folder.absolute(), arguments.timeout) for name in names]
        for run in runs:
            run.prepare()
        is_clean = True
        if arguments.seconds:
            is_clean = sum(not run.fuzz(arguments.seconds / len(runs)) for run in runs) == 0
        if arguments.coverage:
            is_clean = sum(not run.measure() for run in runs) == 0 and is_clean
    return 0 if is_clean else 1


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
