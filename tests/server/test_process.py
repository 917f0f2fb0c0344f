"""How many connections the system lets the service have."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from server.process import OTHER_FILES

ASK = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (%d, %d))
from server.process import most_connections
from server.settings import Settings
print(most_connections(Settings(max_connections=%d)), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "most"), [(100, 1000, 500, 500), (100, 300, 500, 300 - OTHER_FILES), (300, 300, 100, 100)]
)
def test_files_bound_connections_and_the_soft_limit_does_not(soft, hard, wanted, most):
    """In a process of its own, since limits cannot be raised again."""
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[1] >= hard
    command = [sys.executable, "-P", "-c", ASK % (soft, hard, wanted)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == [str(most), str(hard)]
    assert ("limited to" in done.stderr) == (most < wanted)
