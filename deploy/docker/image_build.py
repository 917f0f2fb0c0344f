"""``docker build`` without Docker: the stages of a Dockerfile, carried out in folders."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from clean_root import devices, make_base, mounted, network_lent, run
from dockerfile import SHELL, IgnoreFile, ImageConfig, Instruction, Stage, configure, expand

RUN_TIMEOUT_S = 900


@dataclass
class Image:
    """A stage that was carried out: files and configuration."""

    root: Path
    base: Path
    config: ImageConfig = field(default_factory=ImageConfig)


class Builder:
    """Carries out stages; what they copy comes from ``context``, what they make lies in ``folder``."""

    def __init__(self, context: Path, folder: Path) -> None:
        self._context = context
        self._folder = folder
        self._ignore = IgnoreFile((context / ".dockerignore").read_text())
        self._images: dict[str, Image] = {}

    def build(self, stages: list[Stage]) -> Image:
        """Carry out all stages in order and return the last.

        Raises:
            DockerfileError: an instruction that cannot be carried out as it is written.
            CleanRootError: one that failed.

        """
        for stage in stages:
            base = self._base(stage.image)
            image = Image(self._folder / stage.name, base)
            run(["cp", "--archive", "--reflink=auto", str(base), str(image.root)])
            self._images[stage.name] = image
            for instruction in stage.instructions:
                started_s = time.monotonic()
                self._carry_out(image, instruction)
                took_s = time.monotonic() - started_s
                print(f"{took_s:7.1f} s  {stage.name}: {instruction.keyword} {instruction.text[:90]}", flush=True)
        return self._images[stages[-1].name]

    def _base(self, name: str) -> Path:
        base = self._folder / f"base-{name.replace(':', '-').replace('@', '-')}"
        if not base.exists():
            started_s = time.monotonic()
            make_base(name, base)
            print(f"{time.monotonic() - started_s:7.1f} s  stand-in for {name}", flush=True)
        return base

    def _carry_out(self, image: Image, instruction: Instruction) -> None:
        if instruction.keyword == "RUN":
            self._run(image, instruction)
        elif instruction.keyword == "COPY":
            self._copy(image, instruction)
        else:
            configure(image.config, instruction)
            if instruction.keyword == "WORKDIR":
                (image.root / image.config.workdir.lstrip("/")).mkdir(parents=True, exist_ok=True)

    def _run(self, image: Image, instruction: Instruction) -> None:
        if image.config.user != "0:0":
            raise instruction.refuse("replayed only before USER")
        proc = ["-t", "proc", "proc", str(image.root / "proc")]
        with devices(image.root), mounted(proc), network_lent(image.root) as lent:
            inside = ["chroot", str(image.root), "env", f"--chdir={image.config.workdir}", *SHELL, instruction.text]
            run(inside, image.config.environment | {"HOME": "/"} | lent, timeout_s=RUN_TIMEOUT_S)

    def _copy(self, image: Image, instruction: Instruction) -> None:
        words = expand(instruction.text, image.config.environment, instruction).split()
        stage = words.pop(0).removeprefix("--from=") if words[0].startswith("--from=") else None
        *sources, target = words
        if not sources or any(word.startswith("--") for word in words):
            raise instruction.refuse("expected [--from=STAGE] SOURCE ... TARGET")
        into = image.root / str(PurePosixPath(image.config.workdir, target)).lstrip("/")
        if stage is not None:
            self._copy_from_stage(stage, sources, into, instruction)
            return
        for source in sources:
            self._copy_from_context(source, into, instruction, inside=target.endswith("/"))

    def _copy_from_stage(self, stage: str, sources: list[str], into: Path, instruction: Instruction) -> None:
        if stage not in self._images or len(sources) != 1 or into.exists():
            raise instruction.refuse("expected one source, of a stage above, and a target that is new")
        into.parent.mkdir(parents=True, exist_ok=True)
        run(["cp", "--archive", str(self._images[stage].root / sources[0].lstrip("/")), str(into)])

    def _copy_from_context(self, source: str, into: Path, instruction: Instruction, *, inside: bool) -> None:
        """Copy a file into a folder, or the files of a folder."""
        paths = self._ignore.select(self._context, source)
        if not paths:
            raise instruction.refuse(f"{source}: nothing there that .dockerignore lets in")
        if inside == (self._context / source).is_dir():
            raise instruction.refuse(f"{source}: expected a file and a target with / at its end, or a folder and one without")
        for path in paths:
            to = into / (path.name if inside else path.relative_to(source))
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self._context / path, to)


def size_mb(folder: Path) -> float:
    """Measure a folder, in 10^6 bytes on disk."""
    return int(run(["du", "--summarize", "--bytes", "--one-file-system", str(folder)]).split()[0]) / 1e6
