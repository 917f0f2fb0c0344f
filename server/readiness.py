"""What ``/readyz`` asks: checks by name, each of which says why it fails."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

Check = Callable[[], str | None]
"""Returns ``None`` while all is well, else one line that says what is not. Quick, and without waiting: it runs on the loop."""

OK: Final = "ok"

log = logging.getLogger("mimi.server.readiness")


class Readiness:
    """The checks of one service. Whoever adds a part that can fail registers its check here."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}

    def register(self, name: str, check: Check) -> None:
        """Add a check.

        Args:
            name: one word, as in the body of ``/readyz`` and in the metric ``mimi_ready``.
            check: asked each time.

        """
        self._checks[name] = check

    def results(self) -> dict[str, str]:
        """Ask every check and return ``ok`` or what it says, by name. One that raises has failed, and is logged."""
        return {name: _ask(name, check) for name, check in self._checks.items()}

    @property
    def ready(self) -> bool:
        """Whether every check passes."""
        return all(result == OK for result in self.results().values())


def _ask(name: str, check: Check) -> str:
    try:
        return check() or OK
    except Exception as error:
        log.exception("the readiness check %s failed", name)
        return f"the check failed: {type(error).__name__}"
