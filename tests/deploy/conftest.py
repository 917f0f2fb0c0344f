"""Makes the programs below deploy importable; they are scripts beside one another, not packages."""

from __future__ import annotations

import sys
from pathlib import Path

DEPLOY = Path(__file__).parents[2] / "deploy"
sys.path += [str(DEPLOY / "docker"), str(DEPLOY / "monitoring")]
