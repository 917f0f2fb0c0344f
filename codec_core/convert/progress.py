"""How far a conversion has come."""

from __future__ import annotations

from collections.abc import Callable


class Metre:
    """Counts bytes towards a total and passes them on."""

    def __init__(self, total: int, progress: Callable[[int, int], None] | None) -> None:
        self._total = total
        self._done = 0
        self._progress = progress

    def advance(self, size: int) -> None:
        """Count ``size`` bytes more."""
        self._done += size
        if self._progress is not None:
            self._progress(self._done, self._total)
