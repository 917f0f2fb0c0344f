"""Tasks that belong together: the first to end ends the others."""

from __future__ import annotations

import asyncio
from typing import Any


async def first_of(*tasks: asyncio.Future[Any]) -> None:
    """Wait for the first to end, cancel those others that are tasks, and raise what the first raised."""
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancel(*(task for task in tasks if isinstance(task, asyncio.Task)))
    for ended in done:
        ended.result()


async def cancel(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks and wait until they have ended, however they end."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
