from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from codec_core import __version__
from codec_core.cli.main import BUILT_IN
from codec_core.cli.report import READER_LEFT

Process = Callable[..., "subprocess.Popen[bytes]"]


def plug_in(folder: Path, name: str, source: str) -> None:
    """Install a distribution of one module with one entry point, the way an installer leaves it."""
    (folder / f"{name}_plugin.py").write_text(source)
    info = folder / f"{name}_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[mimi.commands]\n{name} = {name}_plugin:command\n")


@pytest.fixture
def plug_ins(tmp_path: Path) -> Path:
    folder = tmp_path / "plug-ins"
    folder.mkdir()
    plug_in(folder, "greet", '"""Say hello.\n\nMore."""\n\ndef command(name: str) -> None:\n    print("hello", name)\n')
    app = "import typer\ncommand = typer.Typer()\n"
    app += "".join(f"@command.command()\ndef {name}(): print('{name}')\n" for name in ("one", "two"))
    plug_in(folder, "many", app)
    plug_in(folder, "broken", '"""Never works."""\nimport no_such_module\n')
    plug_in(folder, "encode", "def command() -> None:\n    print('stolen')\n")
    return folder


def finish(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    output, errors = process.communicate(timeout=60)
    return process.returncode, output.decode(), errors.decode()


def test_help_lists_every_command_with_its_line(mimi_process: Process, plug_ins: Path) -> None:
    status, output, _ = finish(mimi_process("--help", path=plug_ins))
    assert status == 0
    for line in ("Encode an audio file to codes.", "Say hello.", "Never works.", "Measure encoding and decoding"):
        assert line in output
    assert all(name in output for name in (*BUILT_IN, "greet", "many", "broken"))


def test_listing_imports_no_command(mimi_process: Process, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    trap.mkdir()
    plug_in(trap, "loud", '"""Be loud."""\nprint("IMPORTED")\n')
    _, output, _ = finish(mimi_process("--help", path=trap))
    assert "Be loud." in output
    assert "IMPORTED" not in output


def test_plug_ins_run(mimi_process: Process, plug_ins: Path) -> None:
    assert finish(mimi_process("greet", "you", path=plug_ins))[:2] == (0, "hello you\n")
    assert finish(mimi_process("many", "two", path=plug_ins))[:2] == (0, "two\n")


def test_a_broken_plug_in_is_one_clear_line(mimi_process: Process, plug_ins: Path) -> None:
    status, output, errors = finish(mimi_process("broken", path=plug_ins))
    assert (status, output) == (1, "")
    assert errors == (
        "error[unavailable]: command 'broken': found ModuleNotFoundError: No module named 'no_such_module',"
        " expected broken_plugin:command to import\n"
    )


def test_a_plug_in_cannot_replace_a_command_of_ours(mimi_process: Process, plug_ins: Path) -> None:
    status, output, _ = finish(mimi_process("encode", path=plug_ins))
    assert status == 2
    assert "stolen" not in output


def test_version_and_usage(mimi) -> None:
    assert mimi("--version").output == f"mimi {__version__}\n"
    for arguments in ((), ("encod",), ("encode",), ("encode", "x.wav"), ("encode", "--levels", "many"), ("--no-such",)):
        assert mimi(*arguments).status == 2, arguments
    assert "Did you mean 'encode'" in mimi("encod").errors
    for name in BUILT_IN:
        assert mimi(name, "--help").status == 0
        assert mimi(name, "-h").output == mimi(name, "--help").output
    assert mimi("-h").output == mimi("--help").output


def test_errors_are_one_line_with_code_and_remedy(mimi, tmp_path: Path, tiny_gguf: Path) -> None:
    existing = tmp_path / "x.gguf"
    existing.write_bytes(b"")
    outcome = mimi("convert", tiny_gguf, "-o", existing)
    expected = (
        f"error[output_exists]: {existing}: found a file of that name, expected a name that is free (--force replaces it)\n"
    )
    assert (outcome.status, outcome.output, outcome.errors) == (1, "", expected)


def test_a_hostile_name_cannot_drive_the_terminal(mimi, tmp_path: Path) -> None:
    outcome = mimi("inspect", tmp_path / "a\x1b[2J\nb.gguf")
    assert outcome.status == 1
    assert outcome.errors.count("\n") == 1
    assert "\x1b" not in outcome.errors


def test_ctrl_c_leaves_no_file(mimi_process: Process, tmp_path: Path) -> None:
    process = mimi_process("synth", "-o", tmp_path / "full.safetensors")
    deadline = time.monotonic() + 60
    while not any(path.stat().st_size > 1 << 20 for path in tmp_path.iterdir()):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    status, _, errors = finish(process)
    assert status == 130, errors
    assert "Traceback" not in errors
    assert [path.name for path in tmp_path.iterdir()] == []


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["--version"], ["inspect", "--tensors"], ["inspect", "--json"]])
def test_a_reader_that_leaves_is_no_failure(mimi_process: Process, arguments: list[str]) -> None:
    with mimi_process(*arguments) as process:
        process.stdout.close()
        errors = process.stderr.read()
    assert (process.returncode, errors) == (READER_LEFT, b"")
