"""A Dockerfile as a list of stages, and a ``.dockerignore`` as a filter.

Only what the project's own files use is understood. Anything else is an error, so that what is replayed is what is written.
"""

from __future__ import annotations

import fnmatch
import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

INSTRUCTIONS = frozenset(
    ("ARG", "FROM", "RUN", "COPY", "ENV", "LABEL", "WORKDIR", "USER", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT")
)
SHELL = ("/bin/sh", "-c")
BASE_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
"""What the official Python images set and a program may rely on."""
VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


class DockerfileError(ValueError):
    """A line that is wrong, or that this reader does not understand."""


@dataclass(frozen=True)
class Instruction:
    """One instruction of one line, its continuation lines joined."""

    line: int
    keyword: str
    text: str

    def refuse(self, why: str) -> DockerfileError:
        """Make the error that names this line."""
        return DockerfileError(f"Dockerfile line {self.line}: {self.keyword}: {why}")


@dataclass(frozen=True)
class Stage:
    """One ``FROM`` and what follows it."""

    name: str
    image: str
    instructions: tuple[Instruction, ...]


@dataclass
class ImageConfig:
    """What an image says about how it is run."""

    environment: dict[str, str] = field(default_factory=lambda: dict(BASE_ENVIRONMENT))
    labels: dict[str, str] = field(default_factory=dict)
    workdir: str = "/"
    user: str = "0:0"
    ports: list[int] = field(default_factory=list)
    stop_signal: str = "SIGTERM"
    entrypoint: list[str] = field(default_factory=list)
    healthcheck: list[str] = field(default_factory=list)
    healthcheck_s: dict[str, float] = field(default_factory=dict)
    """``interval``, ``timeout``, ``start-period`` in seconds, and ``retries``."""


def read_instructions(text: str) -> list[Instruction]:
    """Split a Dockerfile into instructions.

    Raises:
        DockerfileError: an unknown instruction.

    """
    found, pending, start = [], "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#") or not line.strip():
            continue
        start = start if pending else number
        pending += line.strip()
        if pending.endswith("\\"):
            pending = pending[:-1]
            continue
        keyword, _, rest = pending.partition(" ")
        instruction = Instruction(start, keyword, rest.strip())
        if keyword not in INSTRUCTIONS:
            raise instruction.refuse("not understood")
        found.append(instruction)
        pending = ""
    if pending:
        raise DockerfileError(f"Dockerfile line {start}: goes on after the end of the file")
    return found


def read_stages(text: str, build_arguments: Mapping[str, str] | None = None) -> list[Stage]:
    """Read a whole Dockerfile; ``build_arguments`` replace defaults of the ``ARG`` lines before the first ``FROM``.

    Raises:
        DockerfileError: see the class.

    """
    arguments: dict[str, str] = {}
    stages: list[tuple[str, str, list[Instruction]]] = []
    for instruction in read_instructions(text):
        if instruction.keyword == "ARG":
            if stages:
                raise instruction.refuse("understood only before the first FROM")
            name, _, default = instruction.text.partition("=")
            arguments[name] = (build_arguments or {}).get(name, default)
        elif instruction.keyword == "FROM":
            named = re.fullmatch(r"(\S+) AS (\w+)", instruction.text)
            if named is None:
                raise instruction.refuse("expected IMAGE AS NAME")
            stages.append((named[2], expand(named[1], arguments, instruction), []))
        elif stages:
            stages[-1][2].append(instruction)
        else:
            raise instruction.refuse("before the first FROM")
    return [Stage(name, image, tuple(instructions)) for name, image, instructions in stages]


def expand(text: str, values: Mapping[str, str], instruction: Instruction) -> str:
    """Put in the values of ``$NAME`` and ``${NAME}``; an unknown name is an error, where Docker would put nothing."""

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name not in values:
            raise instruction.refuse(f"{name} has no value here")
        return values[name]

    expanded = VARIABLE.sub(value, text)
    if "$" in VARIABLE.sub("", text):
        raise instruction.refuse("a $ that is not understood")
    return expanded


def read_pairs(instruction: Instruction, values: Mapping[str, str]) -> dict[str, str]:
    """Read ``NAME=VALUE ...`` of ENV and LABEL."""
    pairs = [word.partition("=") for word in shlex.split(expand(instruction.text, values, instruction))]
    if not all(separator for _, separator, _ in pairs):
        raise instruction.refuse("expected NAME=VALUE")
    return {name: value for name, _, value in pairs}


def read_command(instruction: Instruction, text: str) -> list[str]:
    """Read the exec form, a JSON list; the shell form would put a shell between Docker and the process."""
    try:
        command = json.loads(text)
    except json.JSONDecodeError as cause:
        raise instruction.refuse(f"expected a JSON list: {cause}") from cause
    if not (isinstance(command, list) and command and all(isinstance(word, str) for word in command)):
        raise instruction.refuse("expected a list of texts")
    return command


def configure(config: ImageConfig, instruction: Instruction) -> None:
    """Apply an instruction that changes nothing but the configuration."""
    keyword, text = instruction.keyword, instruction.text
    if keyword == "ENV":
        config.environment |= read_pairs(instruction, config.environment)
    elif keyword == "LABEL":
        config.labels |= read_pairs(instruction, config.environment)
    elif keyword == "WORKDIR":
        config.workdir = str(PurePosixPath(config.workdir, text))
    elif keyword == "USER":
        if not re.fullmatch(r"\d+:\d+", text):
            raise instruction.refuse("expected UID:GID in digits, which need no look-up")
        config.user = text
    elif keyword == "EXPOSE":
        config.ports.append(int(text))
    elif keyword == "STOPSIGNAL":
        config.stop_signal = text
    elif keyword == "ENTRYPOINT":
        config.entrypoint = read_command(instruction, text)
    elif keyword == "HEALTHCHECK":
        _configure_healthcheck(config, instruction)
    else:
        raise instruction.refuse("changes files")


def _configure_healthcheck(config: ImageConfig, instruction: Instruction) -> None:
    options, found, command = instruction.text.partition("CMD ")
    if not found:
        raise instruction.refuse("expected CMD")
    for option in options.split():
        named = re.fullmatch(r"--(interval|timeout|start-period|retries)=(\d+)(s?)", option)
        if named is None or (named[1] == "retries") == bool(named[3]):
            raise instruction.refuse(f"{option} is not understood")
        config.healthcheck_s[named[1]] = float(named[2])
    config.healthcheck = read_command(instruction, command)


class IgnoreFile:
    """The patterns of a ``.dockerignore``: the last that matches a path, or a folder above it, decides."""

    def __init__(self, text: str) -> None:
        lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        self._rules = [(not line.startswith("!"), line.removeprefix("!")) for line in lines]

    def ignores(self, path: PurePosixPath) -> bool:
        """Whether a path, relative to the context, is left out."""
        ignored = False
        for ignores, pattern in self._rules:
            if any(_matches(one, pattern) for one in (path, *path.parents)):
                ignored = ignores
        return ignored

    def select(self, context: Path, source: str) -> list[PurePosixPath]:
        """List the files of the context that a source of ``COPY`` means, relative to the context."""
        start = context / source
        paths = sorted(start.rglob("*")) if start.is_dir() else [start]
        relative = [PurePosixPath(path.relative_to(context)) for path in paths if path.is_file()]
        return [path for path in relative if not self.ignores(path)]


def _matches(path: PurePosixPath, pattern: str) -> bool:
    parts = path.parts
    if pattern.startswith("**/"):
        parts, pattern = parts[-1:], pattern.removeprefix("**/")
    wanted = PurePosixPath(pattern).parts
    return len(parts) == len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted))
