"""The Dockerfile says what an operator relies on, and its reader refuses what it does not know."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path, PurePosixPath

import pytest
from dockerfile import DockerfileError, IgnoreFile, ImageConfig, configure, read_instructions, read_stages

from server.settings import ENVIRONMENT_PREFIX, Settings
from tests.tools import tool

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "Dockerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CHANGES_FILES = {"RUN", "COPY"}
DOCKER_STOP_MS = 10_000


@pytest.fixture(scope="module")
def config() -> ImageConfig:
    """What the last stage says about running."""
    config = ImageConfig()
    for instruction in read_stages(TEXT)[-1].instructions:
        if instruction.keyword not in CHANGES_FILES:
            configure(config, instruction)
    return config


def test_both_stages_stand_on_one_pinned_base_that_can_be_replaced_by_a_digest():
    assert {stage.image for stage in read_stages(TEXT)} == {"python:3.11.14-slim-bookworm"}
    pinned = "python:3.11.14-slim-bookworm@sha256:" + 64 * "0"
    assert {stage.image for stage in read_stages(TEXT, {"PYTHON_IMAGE": pinned})} == {pinned}
    version = read_stages(TEXT)[-1].image.split(":")[1].split("-")[0]
    assert f">={version.rpartition('.')[0]}" == PROJECT["requires-python"]


def test_only_the_first_stage_installs_packages():
    build, runtime = read_stages(TEXT)
    assert any("apt-get install" in instruction.text for instruction in build.instructions)
    commands = " ".join(instruction.text for instruction in runtime.instructions if instruction.keyword == "RUN")
    assert "apt-get" not in commands
    assert "pip" not in commands
    assert [instruction.text for instruction in runtime.instructions if instruction.keyword == "COPY"] == [
        "--from=build /opt/mimi /opt/mimi"
    ]


def test_everything_installed_is_locked_by_hash():
    """One command downloads, held to the lock; whatever installs afterwards sees nothing but what that brought."""
    commands = [part for line in read_stages(TEXT)[0].instructions if line.keyword == "RUN" for part in line.text.split("&&")]
    first, *others = [part for part in commands if "/bin/pip " in part]
    assert {"download", "--require-hashes", "--no-deps"} <= set(first.split())
    assert "--requirement requirements.lock" in first
    assert len(others) >= 3
    assert not [part for part in others if "--no-index --find-links /wheels" not in part]


def test_how_it_runs(config: ImageConfig):
    assert config.user == "10001:10001"
    assert config.entrypoint == ["mimi", "serve"]
    assert config.stop_signal == "SIGTERM"
    assert config.ports == [int(config.environment["MIMI_PORT"])] == [Settings.model_fields["port"].default]
    assert config.environment["MIMI_HOST"] == "0.0.0.0"
    assert config.environment["MIMI_MODEL"] == Settings.model_fields["model"].default
    assert config.environment["PATH"].split(":")[0] == "/opt/mimi/bin"
    assert config.healthcheck[:2] == ["python3", "-c"]
    assert not {"curl", "wget"} & set(config.healthcheck)


def test_every_variable_is_a_setting_and_none_opens_the_service(config: ImageConfig):
    names = [name for name in config.environment if name.startswith(ENVIRONMENT_PREFIX)]
    assert {name.removeprefix(ENVIRONMENT_PREFIX).lower() for name in names} <= set(Settings.model_fields)
    assert "MIMI_ALLOW_REMOTE" not in names
    assert "MIMI_API_KEYS" not in names


def test_labels_are_the_project_s(config: ImageConfig):
    labels = {name.removeprefix("org.opencontainers.image."): value for name, value in config.labels.items()}
    assert labels["title"] == PROJECT["name"]
    assert labels["version"] == PROJECT["version"]
    assert labels["licenses"] == PROJECT["license"]


def test_draining_ends_before_docker_kills(config: ImageConfig):
    stop_timeout_ms = int(config.environment["MIMI_STOP_TIMEOUT_MS"])
    assert Settings.model_fields["drain_timeout_ms"].default + stop_timeout_ms <= DOCKER_STOP_MS


def test_the_context_is_what_the_wheel_is_made_of():
    ignore = IgnoreFile((ROOT / ".dockerignore").read_text())
    for path in (
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "ext/CMakeLists.txt",
        "ext/base/error.h",
        "server/web/static/index.html",
    ):
        assert not ignore.ignores(PurePosixPath(path)), path
    assert not ignore.ignores(PurePosixPath("codec_core/models/default.gguf"))
    for path in (
        ".git/config",
        "tests/conftest.py",
        "docs/docker.md",
        "deploy/docker/replay.py",
        "build/x.o",
        "server.env",
        ".env",
    ):
        assert ignore.ignores(PurePosixPath(path)), path
    for path in ("server/__pycache__/app.pyc", "codec_core/_ext.so", "codec_core/cli/__pycache__/x"):
        assert ignore.ignores(PurePosixPath(path)), path
    chosen = {str(path) for path in ignore.select(ROOT, "server")}
    assert "server/settings.py" in chosen
    assert not any("__pycache__" in path for path in chosen)
    copied = {word for line in read_instructions(TEXT) if line.keyword == "COPY" for word in line.text.split()[:-1]}
    assert all((ROOT / word).exists() for word in copied if not word.startswith(("--from", "/opt")))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("FROM a AS b\nADD x y\n", "line 2: ADD: not understood"),
        ("FROM a\n", "expected IMAGE AS NAME"),
        ("RUN x\nFROM a AS b\n", "before the first FROM"),
        ("FROM a AS b\nARG X=1\n", "understood only before"),
        ("FROM ${X} AS b\n", "X has no value here"),
        ("ARG X=1\nFROM ${X:-2} AS b\n", "a $ that is not understood"),
        ("FROM a AS b\nRUN x \\\n", "goes on after the end"),
    ],
)
def test_a_dockerfile_that_is_not_understood_is_refused(text: str, says: str):
    with pytest.raises(DockerfileError) as refusal:
        read_stages(text)
    assert says in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("ENV A b", "expected NAME=VALUE"),
        ("ENV A=${B}", "B has no value"),
        ("USER mimi", "UID:GID"),
        ("ENTRYPOINT mimi serve", "expected a JSON list"),
        ("ENTRYPOINT []", "expected a list of texts"),
        ("HEALTHCHECK NONE", "expected CMD"),
        ("HEALTHCHECK --every=3s CMD []", "--every=3s is not understood"),
        ("HEALTHCHECK --retries=3s CMD []", "--retries=3s is not understood"),
        ("RUN x", "changes files"),
    ],
)
def test_an_instruction_that_is_not_understood_is_refused(text: str, says: str):
    with pytest.raises(DockerfileError) as refusal:
        configure(ImageConfig(), read_instructions(text)[0])
    assert says in str(refusal.value)


def test_continued_lines_and_comments_between_them_are_joined():
    joined = read_instructions("RUN a \\\n# why\n    b\nENV X=1\n")
    assert [(one.line, one.keyword, one.text) for one in joined] == [(1, "RUN", "a b"), (4, "ENV", "X=1")]


def test_hadolint_has_no_complaint():
    done = subprocess.run(
        [tool("hadolint", "pip install '.[dev]'"), str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
