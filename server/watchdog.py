"""Proves that nothing leaks: looks at regular times whether everything that is held has somebody who holds it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass

from server.codec_executor import CodecExecutor
from server.metrics import Metrics
from server.session_registry import SessionRegistry

log = logging.getLogger("mimi.server.watchdog")

STUCK_STEP_S = 30.0
"""A step takes milliseconds; one that takes this long will not come back."""


@dataclass(frozen=True)
class Audit:
    """What one look has found."""

    leaked_leases: int
    stuck_step: bool


class Watchdog:
    """Gives back the places whose holders have ended without doing so, counts and logs them: each is a fault of the service.

    Args:
        registry: whose places are looked at.
        executor: whose steps are.
        metrics: is told.
        interval_ms: time between two looks.

    """

    def __init__(self, registry: SessionRegistry, executor: CodecExecutor, metrics: Metrics, *, interval_ms: int) -> None:
        self._registry = registry
        self._executor = executor
        self._metrics = metrics
        self._interval_s = interval_ms / 1000
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look."""
        self._task = asyncio.get_running_loop().create_task(self._watch(), name="watchdog")

    async def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def audit(self) -> Audit:
        """Look once."""
        leaked = self._registry.leaked()
        for lease in leaked:
            log.error(
                "a %s ended without giving its place back: session %s, client %s", lease.kind, lease.session_id, lease.client
            )
            self._registry.give_back(lease)
            self._metrics.leaked_lease(lease.kind)
        stuck = self.stuck_step()
        if stuck is not None:
            log.error("the engine is stuck: %s", stuck)
        self._metrics.audited()
        return Audit(len(leaked), stuck is not None)

    def stuck_step(self) -> str | None:
        """Say so if a step of the engine does not come back; a check of readiness."""
        longest_s = self._executor.longest_step_s
        return f"a step has taken {longest_s:.0f} s" if longest_s > STUCK_STEP_S else None

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            try:
                self.audit()
            except Exception:
                log.exception("an audit failed")
