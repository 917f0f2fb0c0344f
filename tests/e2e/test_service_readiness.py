"""When the service says that it takes nothing new, and that it does again."""

from __future__ import annotations

import asyncio

import httpx


async def ready_with(http, check: str, wanted: bool) -> tuple[int, str]:
    """Ask until a check passes, or fails; return the status and what the check says."""
    for _ in range(500):
        answer = await http.get("/readyz")
        said = answer.json()["checks"][check]
        if (said == "ok") == wanted:
            return answer.status_code, said
        await asyncio.sleep(0.02)
    raise AssertionError(said)


async def test_a_store_that_fails_and_is_well_again(start_service, tmp_path):
    store = tmp_path / "store"
    secret = "0123456789abcdef"
    service = start_service("--snapshot-store", str(store), "--secret", secret, "--checkpoint-interval-ms", "50")
    async with httpx.AsyncClient(base_url=service.url) as http:
        assert (await ready_with(http, "snapshot_store", wanted=True))[0] == 200
        aside = store.rename(tmp_path / "aside")
        store.write_text("in the way")
        status, said = await ready_with(http, "snapshot_store", wanted=False)
        assert status == 503
        assert "Not a directory" in said
        store.unlink()
        aside.rename(store)
        assert (await ready_with(http, "snapshot_store", wanted=True))[0] == 200


async def test_without_a_store_none_is_asked(service):
    async with httpx.AsyncClient(base_url=service.url) as http:
        assert "snapshot_store" not in (await http.get("/readyz")).json()["checks"]
