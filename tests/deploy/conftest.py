"""Makes the programs of deploy/docker importable; they are scripts beside one another, not a package."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "deploy" / "docker"))
