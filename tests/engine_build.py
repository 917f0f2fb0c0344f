"""Builds copies of the engine, whole or with one change, for the scalar instruction set only."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from codec_core._ext import Kernels

SOURCE = Path(__file__).parents[1] / "ext"
HARNESS = Path(__file__).parent / "golden" / "mutants" / "dump_stages.cc"
FLAGS = ["-std=c++20", "-O1", "-ffp-contract=off", "-fno-math-errno"]
KERNELS = "kernels/isa_scalar.cc"
Stages = dict[str, np.ndarray]


@dataclass(frozen=True)
class Mutant:
    """One change of the engine's text, and the first stage and frame in which it must show."""

    name: str
    file: str
    text: str
    instead: str
    stage: str
    frame: int = 0


def compiler() -> str | None:
    return shutil.which(os.environ.get("CXX", "c++"))


class Engine:
    """A copy of the sources with its objects; mutants are built on top of it, several at a time, while others run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sources = folder / "ext"
        shutil.copytree(SOURCE, self.sources)
        shutil.copy(HARNESS, self.sources / "dump_stages.cc")
        units = [path.relative_to(self.sources) for path in self.sources.rglob("*.cc")]
        self.units = [str(unit) for unit in units if unit.parts[0] != "bindings" and not unit.name.startswith("isa_avx")]
        self.pool = ThreadPoolExecutor(len(os.sched_getaffinity(0)))
        self.program = self._build(self.units, folder / "whole", [self.sources], self.pool.map)

    def mutated(self, mutant: Mutant) -> Path:
        """Build the program with one change: the changed file lies before the others, and what includes it is compiled anew."""
        changed = self.folder / mutant.name.replace(" ", "_")
        before = (self.sources / mutant.file).read_text()
        assert before.count(mutant.text) == 1, f"mutant {mutant.name!r} no longer fits {mutant.file}: write it anew"
        (changed / mutant.file).parent.mkdir(parents=True)
        (changed / mutant.file).write_text(before.replace(mutant.text, mutant.instead))
        units = [unit for unit in self.units if self._includes(unit, mutant.file)]
        return self._build(units, changed, [changed, self.sources], map)

    def with_main(self, harness: Path, flags: list[str]) -> Path:
        """Build the unchanged engine with another program around it; ``flags`` go to the linker."""
        program = self.folder / harness.stem
        objects = [str(_object(self.folder / "whole", unit)) for unit in self.units if unit != HARNESS.name]
        _run([str(compiler()), *FLAGS, "-I", str(self.sources), str(harness), *objects, "-pthread", *flags, "-o", str(program)])
        return program

    def _build(self, units: list[str], objects: Path, places: list[Path], mapping: Callable[..., Iterator[None]]) -> Path:
        assert units
        objects.mkdir(exist_ok=True)
        list(mapping(lambda unit: _compile(unit, objects, places), units))
        chosen = [objects if unit in units else self.folder / "whole" for unit in self.units]
        files = [str(_object(folder, unit)) for folder, unit in zip(chosen, self.units, strict=True)]
        program = objects / "dump_stages"
        _run([str(compiler()), *files, "-pthread", "-o", str(program)])
        return program

    def _includes(self, unit: str, file: str) -> bool:
        words = _object(self.folder / "whole", unit).with_suffix(".d").read_text().split()
        return str(self.sources / file) in words


def _compile(unit: str, objects: Path, places: list[Path]) -> None:
    flags = list(FLAGS)
    if unit == KERNELS:
        # Vector instructions change no result of plain loops, and a fused multiply-add is no call of a function then.
        flags += ["-O2", *(["-mavx2", "-mfma", "-mf16c"] if "avx2" in Kernels.usable_isas() else [])]
    source = next(place / unit for place in places if (place / unit).exists())
    includes = [flag for place in places for flag in ("-I", str(place))]
    _run([str(compiler()), *flags, "-MMD", *includes, "-c", str(source), "-o", str(_object(objects, unit))])


def _object(folder: Path, unit: str) -> Path:
    return folder / unit.replace("/", "_").replace(".cc", ".o")


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def dump(program: Path, model: Path, pcm: np.ndarray, codes: np.ndarray) -> list[Stages]:
    """Encode pcm float32 [frames, 1920] and decode codes [levels, frames]; every stage [channels, steps] of each frame."""
    levels, frames = codes.shape
    data = pcm.astype("<f4").tobytes() + codes.T.astype("<i4").tobytes()
    command = [program, model, "ggml", str(levels), str(frames)]
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    stream, found = io.BytesIO(done.stdout), [Stages()]
    while name := stream.readline().decode().strip():
        if name == "end":
            found.append(Stages())
            continue
        rows, channels = np.frombuffer(stream.read(8), "<u4").tolist()
        values = np.frombuffer(stream.read(4 * rows * channels), "<f4").reshape(rows, channels)
        found[-1][name] = np.ascontiguousarray(values.T)
    return found[:-1]
