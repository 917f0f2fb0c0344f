"""What is installed where it matters is locked: the image by hashes, CI by versions. ``deploy/lock_versions`` writes both."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
IMAGE = ROOT / "deploy" / "docker" / "requirements.lock"
CI = ROOT / ".ci" / "constraints.txt"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def locked(path: Path) -> dict[str, set[str]]:
    """Versions by normalised name; a package may have one for each version of Python."""
    found: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", path.read_text(), re.M):
        found.setdefault(re.sub(r"[-_.]+", "-", name).lower(), set()).add(version)
    assert len(found) > 10
    return found


def unmet(requirements: list[str], versions: dict[str, set[str]]) -> list[str]:
    wrong = []
    for requirement in map(Requirement, requirements):
        found = versions.get(re.sub(r"[-_.]+", "-", requirement.name).lower(), set())
        if requirement.name != PROJECT["project"]["name"] and not any(requirement.specifier.contains(one) for one in found):
            wrong.append(f"{requirement}: {found or 'not locked'}")
    return wrong


def test_the_image_s_lock_has_all_that_the_service_needs_and_is_built_with():
    extras = re.findall(r"mimi-server\[([a-z,]+)\]", (ROOT / "Dockerfile").read_text())
    assert extras
    needed = PROJECT["project"]["dependencies"] + PROJECT["build-system"]["requires"]
    needed += [one for extra in ",".join(extras).split(",") for one in PROJECT["project"]["optional-dependencies"][extra]]
    assert not unmet(needed, locked(IMAGE))


def test_ci_s_lock_has_every_extra():
    extras = PROJECT["project"]["optional-dependencies"].values()
    needed = PROJECT["project"]["dependencies"] + [requirement for extra in extras for requirement in extra]
    assert not unmet(needed, locked(CI))


def test_the_two_locks_agree():
    ci = locked(CI)
    assert not {name: versions for name, versions in locked(IMAGE).items() if versions != ci.get(name)}


def test_every_version_of_the_image_has_its_hashes():
    entries = re.split(r"\n(?=\S)", IMAGE.read_text().strip())
    assert not [entry.split("\n")[0] for entry in entries if "--hash=sha256:" not in entry]


@pytest.mark.parametrize("path", [IMAGE, CI], ids=["image", "CI"])
def test_versions_are_exact_and_from_a_registry(path: Path):
    lines = [line for line in path.read_text().splitlines() if not line.startswith((" ", "#"))]
    assert not [line for line in lines if not re.match(r"[A-Za-z0-9._-]+==", line)]
