"""Which kernels run, and that forcing what is absent is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from codec_core import CodecModel
from codec_core._ext import Kernels
from codec_core.errors import UnavailableError


def test_scalar_is_always_usable_and_last():
    assert Kernels.usable_isas()[-1] == "scalar"


def test_what_the_kernel_says_of_the_cpu_is_what_we_use():
    text = Path("/proc/cpuinfo").read_text()
    flags = set(next(line for line in text.splitlines() if line.startswith("flags")).split())
    expected = []
    if {"avx512f", "avx512dq", "avx512bw", "avx512vl"} <= flags:
        expected += ["avx512_vnni", "avx512"] if "avx512_vnni" in flags else ["avx512"]
    if {"avx2", "fma", "f16c"} <= flags:
        expected.append("avx2")
    assert Kernels.usable_isas() == [*expected, "scalar"]


def test_best_is_the_default(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("MIMI_ISA", raising=False)
    assert CodecModel.open("default").info.isa == Kernels.usable_isas()[0]


def test_forcing_what_is_absent_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MIMI_ISA", "sse9")
    with pytest.raises(UnavailableError) as refusal:
        CodecModel.open("default")
    assert refusal.value.subject == "instruction set"
    assert refusal.value.found == "sse9"
    assert "scalar" in refusal.value.expected
