"""Includes and imports point only down, as docs/architecture.md draws it."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ENGINE = ROOT / "ext"

# Each floor with those straight below it. What can be reached along these arrows may be included.
FLOORS_BELOW = {
    "base": (),
    "kernels": ("base",),
    "state": ("base",),
    "weights": ("base",),
    "layers": ("kernels", "state"),
    "model": ("layers", "weights"),
    "codec": ("model", "weights"),
    "lm": ("model", "weights"),
    "bindings": ("codec", "lm"),
}
# The units that are built for one instruction set, and what they are made of.
ISA_UNITS = sorted(path.name for pattern in ("isa_*.cc", "body_*.h", "vec_*.h") for path in (ENGINE / "kernels").glob(pattern))
# No function of these is ever compiled into the including unit.
HARMLESS_HEADERS = {"cstddef", "cstdint", "immintrin.h"}
# Declare what units need beside what others need; the standard types are named there and used by no unit.
SHARED_DECLARATIONS = {"kernels/dispatch.h", "kernels/ggml_libm.h"}

# Third packages, each with the only places that may import it.
CONFINED_PACKAGES = {
    "typer": ("codec_core.cli", "server.command", "server.__main__"),
    "rich": ("codec_core.cli",),
    "fastapi": ("server",),
    "starlette": ("server",),
    "uvicorn": ("server",),
    "websockets": ("server", "codec_core.client"),
    "pydantic": ("server.settings", "server.command"),
    "pydantic_settings": ("server.settings",),
    "soundfile": ("codec_core.audio_file",),
    "soxr": ("codec_core.pcm", "server.resampling"),
    "redis": ("server.snapshot_store_redis",),
    "asyncio": ("server", "codec_core.client", "codec_core.cli.stream", "codec_core.cli.stream_source"),
    "prometheus_client": ("server.metrics",),
    "structlog": ("server.logs",),
    "opentelemetry": ("server.otel",),
    "huggingface_hub": ("codec_core.hub",),
    "sounddevice": ("codec_core.microphone",),
    "av": ("codec_core.opus",),
    "pyarrow": ("codec_core.corpus.parquet_shard",),
    "ray": ("codec_core.corpus.ray_run",),
    "matplotlib": ("codec_core.verify.drift_plot", "codec_core.verify.quality_plot"),
    "pesq": ("codec_core.verify.speech_measures",),
    "pocketsphinx": ("codec_core.verify.speech_measures",),
    "pystoi": ("codec_core.verify.speech_measures",),
    "sentencepiece": ("codec_core.text_tokenizer",),
}
WIRE_MODULES = ("server.wire", *(f"server.wire_{part}" for part in ("messages", "opus", "resume", "settings", "talk")))
# The client's part that speaks the protocol, without what connects.
CLIENT_WIRE_MODULES = tuple(
    f"codec_core.client.{name}"
    for name in ("errors", "messages", "opus_sound", "outbox", "payload", "protocol", "settings", "timing")
)
CLIENT_NEEDS = {
    "codec_core.errors",
    "codec_core.ogg",
    "codec_core.opus",
    "codec_core.opus_packets",
    "codec_core.pcm",
    "numpy",
    "websockets",
}


def engine_files() -> list[Path]:
    files = [*ENGINE.rglob("*.h"), *ENGINE.rglob("*.cc")]
    assert len(files) > 50
    return sorted(files)


def includes(path: Path) -> list[tuple[str, str]]:
    """(delimiter, name) of every include: '"' for ours, '<' for others'."""
    return re.findall(r'^\s*#\s*include\s*(["<])([^">]+)[">]', path.read_text(), re.M)


def floors_within_reach(floor: str) -> set[str]:
    return {floor}.union(*(floors_within_reach(below) for below in FLOORS_BELOW[floor]))


def test_every_folder_of_the_engine_is_a_floor():
    assert {path.parent.relative_to(ENGINE).as_posix() for path in engine_files()} == set(FLOORS_BELOW)


@pytest.mark.parametrize("floor", FLOORS_BELOW)
def test_includes_point_down(floor: str):
    reach = floors_within_reach(floor)
    wrong = [
        f"{path.relative_to(ROOT)} includes {name}"
        for path in engine_files()
        if path.parent.name == floor
        for delimiter, name in includes(path)
        if delimiter == '"' and name.split("/")[0] not in reach
    ]
    assert not wrong, wrong


def test_own_headers_are_included_by_their_full_path():
    missing = [
        f"{path.relative_to(ROOT)} includes {name}"
        for path in engine_files()
        for delimiter, name in includes(path)
        if delimiter == '"' and not (ENGINE / name).is_file()
    ]
    assert not missing, missing


def test_only_bindings_know_python():
    wrong = [
        f"{path.relative_to(ROOT)} includes {name}"
        for path in engine_files()
        if path.parent.name != "bindings"
        for _, name in includes(path)
        if name == "Python.h" or name.startswith(("nanobind", "pybind11", "numpy"))
    ]
    assert not wrong, wrong


def headers_seen_by(path: Path, seen: set[str]) -> Iterator[tuple[str, str]]:
    """Standard headers a file gets, with the file that includes each."""
    for delimiter, name in includes(path):
        if delimiter == "<":
            yield name, path.relative_to(ENGINE).as_posix()
        elif name not in seen and name not in SHARED_DECLARATIONS:
            seen.add(name)
            yield from headers_seen_by(ENGINE / name, seen)


@pytest.mark.parametrize("name", ISA_UNITS)
def test_units_of_one_instruction_set_use_no_standard_library(name: str):
    """An inline function compiled there may be the copy the linker keeps for all; CI also looks into the objects."""
    found = [f"<{header}> in {file}" for header, file in headers_seen_by(ENGINE / "kernels" / name, set())]
    assert not [entry for entry in found if entry.split(">")[0][1:] not in HARMLESS_HEADERS]


def modules() -> dict[str, Path]:
    found = {}
    for package in ("codec_core", "server"):
        for path in (ROOT / package).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    assert len(found) > 30
    return found


MODULES = modules()


def is_type_checking_block(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def imported_names(node: ast.AST, *, while_loading: bool) -> Iterator[str]:
    """Full names that code imports: all of them, or only what importing the module itself imports."""
    for child in ast.iter_child_nodes(node):
        if while_loading and (isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) or is_type_checking_block(child)):
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, "relative imports hide where an arrow points"
            for alias in child.names:
                name = f"{child.module}.{alias.name}"
                yield name if name in MODULES or alias.name == "_ext" else str(child.module)
        else:
            yield from imported_names(child, while_loading=while_loading)


def imports(module: str, *, while_loading: bool = False) -> set[str]:
    return set(imported_names(ast.parse(MODULES[module].read_text()), while_loading=while_loading))


def is_within(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def importers(package: str) -> list[str]:
    return [module for module in MODULES if any(is_within(name, (package,)) for name in imports(module))]


def test_the_service_never_touches_the_extension():
    assert not [module for module in importers("codec_core._ext") if is_within(module, ("server",))]


def test_the_library_never_imports_the_service():
    assert not [module for module in importers("server") if is_within(module, ("codec_core",))]


def test_only_the_command_line_imports_the_command_line():
    """``server.command`` is a part of it: the command ``mimi serve``, plugged in."""
    places = ("codec_core.cli", "server.command")
    assert not [module for module in importers("codec_core.cli") if not is_within(module, places)]


@pytest.mark.parametrize("package", CONFINED_PACKAGES)
def test_third_packages_stay_in_their_place(package: str):
    assert not [module for module in importers(package) if not is_within(module, CONFINED_PACKAGES[package])]


def test_the_wire_is_plain_python():
    """The protocol's modules import the standard library, the error tree and one another; so do those they import."""
    waiting, seen = list(WIRE_MODULES), set()
    while waiting:
        module = waiting.pop()
        seen.add(module)
        for name in imports(module):
            if name in MODULES:
                waiting += [] if name in seen else [name]
            else:
                assert name.split(".")[0] in sys.stdlib_module_names, f"{module} imports {name}"
                assert name.split(".")[0] not in {"asyncio", "socket", "threading"}, f"{module} imports {name}"
    assert seen == {
        *WIRE_MODULES,
        "server.errors",
        "server.status_map",
        "codec_core.errors",
        "codec_core.ogg",
        "codec_core.opus_packets",
    }


@pytest.mark.parametrize("module", CLIENT_WIRE_MODULES)
def test_the_client_s_wire_knows_no_sockets(module: str):
    tops = {name.split(".")[0] for name in imports(module)}
    assert not tops & {"asyncio", "socket", "threading", "websockets"}


def test_the_client_needs_little():
    """Errors and the scaling of samples, numpy and websockets: what a device that only sends sound has room for."""
    for module in MODULES:
        if is_within(module, ("codec_core.client",)):
            for name in imports(module):
                known = name.split(".")[0] in sys.stdlib_module_names or is_within(name, ("codec_core.client", *CLIENT_NEEDS))
                assert known, f"{module} imports {name}"


def test_no_module_imports_itself_in_a_circle():
    below = {module: imports(module, while_loading=True) & set(MODULES) - {module} for module in MODULES}
    while removable := [module for module, names in below.items() if not names & set(below)]:
        for module in removable:
            del below[module]
    assert not below, f"a circle among {sorted(below)}"
