"""What a service asks of its model before it serves."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from codec_core import CodecModel
from codec_core._ext import Kernels
from server import self_test
from server.codec_executor import CodecExecutor
from server.step_cost import StepCost

PROGRAM = """
import asyncio, sys
from codec_core import CodecModel
from server.codec_executor import CodecExecutor
from server.self_test import run_self_test
from server.step_cost import StepCost
model = CodecModel.open(sys.argv[1], sys.argv[2])
async def main():
    executor = CodecExecutor(model, StepCost())
    print(model.info.isa, *await run_self_test(executor, model))
    executor.close()
asyncio.run(main())
"""


async def outcome(model: CodecModel) -> tuple[str, str]:
    executor = CodecExecutor(model, StepCost())
    try:
        return await self_test.run_self_test(executor, model)
    finally:
        executor.close()


@pytest.mark.parametrize("numerics", ["kyutai", "ggml"])
@pytest.mark.parametrize("isa", Kernels.usable_isas())
def test_the_embedded_model_gives_its_golden_codes_whatever_the_machine(isa: str, numerics: str):
    command = [sys.executable, "-P", "-c", PROGRAM, "default", numerics]
    done = subprocess.run(command, env=os.environ | {"MIMI_ISA": isa}, capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout.strip(), done.stderr) == (f"{isa} passed equal", "")


async def test_golden_codes_are_of_the_embedded_model_and_of_no_other(default_model, tiny_model):
    assert default_model.info.sha256 == self_test.DEFAULT_MODEL
    assert await outcome(tiny_model) == ("passed", "none known of this model")


async def test_other_answers_fail_it(tiny_model, monkeypatch):
    monkeypatch.setitem(self_test.GOLDEN, (tiny_model.info.sha256, tiny_model.info.numerics), "0" * 64)
    found, golden = await outcome(tiny_model)
    assert found.startswith("self-test: found other codes and samples (")
    assert found.endswith("expected the golden ones (000000000000)")
    assert golden == "not compared"


def test_the_signal_is_noise_within_full_scale():
    frames = self_test.signal(1920)
    assert frames.shape == (self_test.FRAMES, 1920)
    assert abs(frames).max() <= 0.5
    assert 0.25 < frames.std() < 0.32
