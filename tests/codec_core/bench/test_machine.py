from __future__ import annotations

import os
from pathlib import Path

from codec_core._ext import Kernels
from codec_core.bench.machine import describe_machine


def test_the_machine_is_named():
    found = describe_machine()
    assert found["cores"] == len(os.sched_getaffinity(0))
    assert found["instruction_sets"] == Kernels.usable_isas()
    assert found["processor"].partition(", family")[0] in Path("/proc/cpuinfo").read_text()
    assert found["load_before"] >= 0
    assert all(name.startswith("L") and size for name, size in found["caches"].items())
