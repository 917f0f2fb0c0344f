"""What a running service says of its load, at once or as soon as it says so."""

from __future__ import annotations

import asyncio

import httpx


async def load_of(service) -> dict:
    async with httpx.AsyncClient(base_url=service.url) as http:
        return (await http.get("/v1/info")).json()["load"]


async def wait_for(service, name: str, count: int) -> None:
    for _ in range(500):
        if (await load_of(service))[name] == count:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"{name} did not become {count}")
