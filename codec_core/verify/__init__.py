"""Conformance: the packaged golden vectors of both numerics, and the invariances of any model, on this machine.

:func:`run_checks` does all of it; ``mimi verify`` is the command over it.
"""

from codec_core.difference import Difference
from codec_core.verify.plan import Check, CheckResult, Plan, run_checks

__all__ = ["Check", "CheckResult", "Difference", "Plan", "run_checks"]
