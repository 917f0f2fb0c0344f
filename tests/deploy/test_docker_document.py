"""The ``docker`` lines of the documents are legal, say what they should, and are the ones that are replayed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from docker_run import RunLine, RunLineError, Volume, read_run_line, shell_lines
from dockerfile import read_stages

from server.settings import ENVIRONMENT_PREFIX, Settings

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "docker.md").read_text()
LINES = shell_lines(DOCUMENT, "docker run")
VARIABLES = {"PWD": "/somewhere", "MIMI_API_KEYS": "a-key"}
README_LINES = shell_lines((ROOT / "README.md").read_text(), "docker run")


def read(text: str) -> RunLine:
    return read_run_line(text, VARIABLES)


def test_there_is_a_line_for_keys_one_for_a_model_and_one_to_try():
    assert len(LINES) == 3
    assert sum(bool(read(line).volumes) for line in LINES) == 1
    assert sum("MIMI_ALLOW_REMOTE" in read(line).environment for line in LINES) == 1


def test_the_readme_says_nothing_that_is_not_replayed():
    assert set(README_LINES) <= set(LINES)


@pytest.mark.parametrize("text", LINES)
def test_lines_run_the_image_that_is_built_with_settings_that_exist(text: str):
    builds = [shlex.split(line) for line in shell_lines(DOCUMENT, "docker build")]
    line = read(text)
    assert all(words[words.index("--tag") + 1] == line.image for words in builds)
    assert line.arguments == []
    assert all(name.startswith(ENVIRONMENT_PREFIX) for name in line.environment)
    assert {name.removeprefix(ENVIRONMENT_PREFIX).lower() for name in line.environment} <= set(Settings.model_fields)
    exposed = [one.text for one in read_stages((ROOT / "Dockerfile").read_text())[-1].instructions if one.keyword == "EXPOSE"]
    assert [str(port) for port in line.published.values()] == exposed


@pytest.mark.parametrize("text", LINES)
def test_whoever_is_reachable_asks_for_a_key_and_is_held_tight(text: str):
    line = read(text)
    if all(host.startswith("127.0.0.1:") for host in line.published):
        assert line.environment == {"MIMI_ALLOW_REMOTE": "true"}
        return
    assert line.environment["MIMI_API_KEYS"] == "a-key"
    assert (line.read_only, line.tmpfs, line.drop_capabilities, line.no_new_privileges) == (True, ["/tmp"], True, True)
    assert all(volume.read_only for volume in line.volumes)


def test_volumes_and_variables_are_read_as_a_shell_and_docker_would():
    line = read('docker run --env A=b=c --env MISSING --volume "$PWD/m:/m:ro" image word')
    assert line.environment == {"A": "b=c"}
    assert line.volumes == [Volume("/somewhere/m", "/m", read_only=True)]
    assert (line.image, line.arguments) == ("image", ["word"])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("docker run --privileged image", "--privileged is not understood"),
        ("docker run --cap-drop NET_RAW image", "--cap-drop NET_RAW is not understood"),
        ("docker run --security-opt seccomp=unconfined image", "is not understood"),
        ("docker run --volume $HOME:/x image", "HOME has no value here"),
        ("docker run --rm", "no image"),
        ("docker run --env", "--env is not understood"),
    ],
)
def test_a_line_that_is_not_understood_is_refused(text: str, says: str):
    with pytest.raises(RunLineError, match=re.escape(says)):
        read(text)


def test_settings_named_by_the_document_exist():
    names = set(re.findall(r"\bMIMI_([A-Z_]+)\b", DOCUMENT))
    assert names
    asked_by_compose = set(re.findall(r"\$\{MIMI_([A-Z_]+)", (ROOT / "deploy" / "compose" / "compose.yaml").read_text()))
    assert {name.lower() for name in names - asked_by_compose} <= set(Settings.model_fields)


def test_the_document_shows_how_a_start_without_keys_is_refused():
    shown = re.findall(r"^```text\n(.*?)^```$", DOCUMENT, re.M | re.S)
    assert [text.strip() for text in shown] == [
        "mimi serve: host: found 0.0.0.0, expected a loopback address, or keys in MIMI_API_KEYS; --allow-remote listens without"
    ]
    assert shown[0].split("expected ")[1].strip() in (ROOT / "server" / "process.py").read_text()
