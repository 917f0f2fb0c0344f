"""The extension is built against what a fault in it could become: the file itself is asked, as the loader sees it."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from codec_core import _ext


def told(*options: str) -> str:
    return subprocess.run(["readelf", "-W", *options, _ext.__file__], capture_output=True, text=True, check=True).stdout


def is_sanitized() -> bool:
    return shutil.which("readelf") is not None and "__asan_init" in told("--dyn-syms")


pytestmark = [
    pytest.mark.skipif(shutil.which("readelf") is None, reason="no readelf"),
    pytest.mark.skipif(is_sanitized(), reason="a build for sanitizers, which bring their own"),
]


@pytest.fixture(scope="module")
def symbols() -> str:
    return told("--dyn-syms")


def test_addresses_are_bound_at_once_and_then_read_only():
    assert "BIND_NOW" in told("--dynamic")
    assert "GNU_RELRO" in told("--segments")


def test_no_memory_is_both_written_and_run():
    segments = [line.split() for line in told("--segments").splitlines() if line.strip().startswith(("LOAD", "GNU_STACK"))]
    assert segments
    flags = ["".join(words[6:-1]) for words in segments]
    assert not [flag for flag in flags if "W" in flag and "E" in flag], flags


def test_stacks_are_guarded(symbols: str):
    assert "__stack_chk_fail" in symbols


def test_containers_check_their_bounds(symbols: str):
    assert "__glibcxx_assert_fail" in symbols
