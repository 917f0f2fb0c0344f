"""Builds the fuzz targets in C++ with clang++: with libFuzzer and sanitizers to find, or with counters to measure."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from fuzz_targets import ROOT

HERE: Final = Path(__file__).parent
ENGINE: Final = ROOT / "ext"
NATIVE: Final = tuple(sorted(path.stem.removeprefix("fuzz_") for path in HERE.glob("fuzz_*.cc")))
READER_UNITS: Final = (
    "base/aligned_buffer.cc",
    "base/error.cc",
    "model/contract.cc",
    "model/geometry.cc",
    "model/tensor_names.cc",
)
FLAGS: Final = ("-std=c++20", "-O2", "-ffp-contract=off", "-fno-math-errno", "-pthread", "-I", str(ENGINE), "-I", str(HERE))
FINDING: Final = ("-gline-tables-only", "-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all")
COUNTING: Final = ("-fprofile-instr-generate", "-fcoverage-mapping")


def built(name: str, folder: Path, counted: frozenset[Path] = frozenset()) -> Path:
    """Build a target where it was not built before; the units in ``counted`` count their lines. Returns the program.

    Raises:
        SystemExit: a unit does not compile.

    """
    objects = folder / "objects"
    objects.mkdir(parents=True, exist_ok=True)
    (folder / name).mkdir(exist_ok=True)
    program = folder / name / ("counting-program" if counted else "program")
    newest_s = max(path.stat().st_mtime for path in (*ENGINE.rglob("*.*"), *HERE.glob("fuzz_*")))
    if program.exists() and program.stat().st_mtime > newest_s:
        return program
    main = HERE / f"fuzz_{name}.cc"
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        chosen = [(unit, COUNTING if unit in counted else ()) for unit in (main, *_units(name))]
        units = list(threads.map(lambda one: _compiled(one[0], objects, one[1], newest_s), chosen))
    kind = (*FINDING, *(COUNTING if counted else ()))
    _run([_compiler(), *FLAGS, *kind, "-fsanitize=fuzzer", *map(str, units), "-o", str(program)])
    return program


def line_coverage(
    command: list[str], patterns: tuple[str, ...], folder: Path, environment: dict[str, str]
) -> list[tuple[str, int, int]]:
    """Run a program that counts; returns each file with the lines that were reached and those that there are."""
    raw, profile = folder / "counts.raw", folder / "counts"
    subprocess.run(command, env=environment | {"LLVM_PROFILE_FILE": str(raw)}, check=True, capture_output=True)
    _run([_tool("llvm-profdata"), "merge", "-sparse", str(raw), "-o", str(profile)])
    sources = [str(path) for pattern in patterns for path in sorted(ROOT.glob(pattern))]
    export = [_tool("llvm-cov"), "export", "-summary-only", "-instr-profile", str(profile), command[0], *sources]
    found = json.loads(_run(export))["data"][0]["files"]
    counts = [(str(Path(file["filename"]).relative_to(ROOT)), file["summary"]["lines"]) for file in found]
    return [(name, lines["covered"], lines["count"]) for name, lines in counts]


def _units(name: str) -> list[Path]:
    if name == "gguf_reader":
        return [*(ENGINE / unit for unit in READER_UNITS), *sorted((ENGINE / "weights").glob("*.cc"))]
    units = [path for path in sorted(ENGINE.rglob("*.cc")) if path.parent.name != "bindings"]
    return [path for path in units if not path.name.startswith("isa_avx")]


def _compiled(unit: Path, objects: Path, counting: tuple[str, ...], newest_s: float) -> Path:
    made = objects / f"{unit.parent.name}_{unit.stem}{'_counting' if counting else ''}.o"
    if not made.exists() or made.stat().st_mtime < newest_s:
        # The loops of the kernels have nothing to steer by, and every turn of them would be told to the fuzzer.
        fuzzing = ("-fsanitize=fuzzer-no-link",) if unit.parent.name != "kernels" else ()
        _run([_compiler(), *FLAGS, *FINDING, *counting, *fuzzing, "-c", str(unit), "-o", str(made)])
    return made


def _compiler() -> str:
    found = os.environ.get("MIMI_FUZZ_CXX") or shutil.which("clang++")
    if found is None:
        raise SystemExit("no clang++, which the targets in C++ are built with")
    return found


def _tool(name: str) -> str:
    for path in sorted(Path(_compiler()).resolve().parent.glob(f"{name}*")):
        return str(path)
    raise SystemExit(f"no {name} beside clang++")


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout
