"""The window's own test in C++, built with the compiler at hand; under a sanitizer it is CONTRIBUTING's command."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.skipif(shutil.which(os.environ.get("CXX", "c++")) is None, reason="no C++ compiler")
def test_threads_faults_and_allocations():
    done = subprocess.run(
        [Path(__file__).with_name("run_tensor_window")], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "plans" in done.stdout
