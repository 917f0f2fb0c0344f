"""The ``docker build`` and ``docker run`` lines of a document, read as Docker reads them.

Only the options that the project documents are understood; another one is an error, so that no line is documented that is not
replayed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

SWITCHES = frozenset(("--rm", "--detach", "--read-only"))
VALUES = frozenset(("--name", "--publish", "--tmpfs", "--cap-drop", "--security-opt", "--env", "--volume"))


class RunLineError(ValueError):
    """A line that is wrong, or that this reader does not understand."""


@dataclass(frozen=True)
class Volume:
    """A folder of the host that the container sees."""

    source: str
    target: str
    read_only: bool


@dataclass
class RunLine:
    """One ``docker run``."""

    text: str
    image: str = ""
    arguments: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    published: dict[str, int] = field(default_factory=dict)
    """Port of the container by ``[ADDRESS:]PORT`` of the host."""
    read_only: bool = False
    tmpfs: list[str] = field(default_factory=list)
    volumes: list[Volume] = field(default_factory=list)
    drop_capabilities: bool = False
    no_new_privileges: bool = False


def shell_lines(document: str, command: str) -> list[str]:
    """Find the lines of the document's ``sh`` blocks that begin with ``command``, continuation lines joined."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", document, re.M | re.S)
    lines = [line for block in blocks for line in re.sub(r"\s*\\\n\s*", " ", block).splitlines()]
    return [line for line in lines if line.startswith(f"{command} ")]


def read_run_line(text: str, variables: Mapping[str, str]) -> RunLine:
    """Read one line, as a shell with these variables hands it to Docker.

    Raises:
        RunLineError: an option that is not understood, or no image.

    """
    line = RunLine(text)
    words = [_expand(word, variables) for word in shlex.split(text)][2:]
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option in SWITCHES:
            line.read_only |= option == "--read-only"
        elif option in VALUES and words:
            _take(line, option, words.pop(0), variables)
        else:
            raise RunLineError(f"{text}: {option} is not understood")
    if not words:
        raise RunLineError(f"{text}: no image")
    line.image, *line.arguments = words
    return line


def _take(line: RunLine, option: str, value: str, variables: Mapping[str, str]) -> None:
    if option == "--env":
        name, given, text = value.partition("=")
        # A bare name hands the caller's variable on, if there is one.
        if given or name in variables:
            line.environment[name] = text if given else variables[name]
    elif option == "--publish":
        host, _, container = value.rpartition(":")
        line.published[host] = int(container)
    elif option == "--tmpfs":
        line.tmpfs.append(value)
    elif option == "--volume":
        source, target, *rest = value.split(":")
        line.volumes.append(Volume(source, target, rest == ["ro"]))
    elif (option, value) == ("--cap-drop", "ALL"):
        line.drop_capabilities = True
    elif (option, value) == ("--security-opt", "no-new-privileges"):
        line.no_new_privileges = True
    elif option != "--name":
        raise RunLineError(f"{line.text}: {option} {value} is not understood")


def _expand(word: str, variables: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1] not in variables:
            raise RunLineError(f"{word}: {match[1]} has no value here")
        return variables[match[1]]

    return re.sub(r"\$(\w+)", value, word)
