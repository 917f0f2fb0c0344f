"""What an operator gets to see: logs and metrics of a service that was used, and what must never be in them."""

from __future__ import annotations

import asyncio
import json

import httpx
import numpy as np
import pytest

SECRET = "the-key-of-the-test"
HEADERS = {"authorization": f"Bearer {SECRET}"}


@pytest.fixture
def used(start_service, monkeypatch):
    monkeypatch.setenv("MIMI_API_KEYS", SECRET)
    return start_service("--log-format", "json", "--log-level", "debug")


def events(service) -> list[dict]:
    return [json.loads(line) for line in service.log.splitlines() if line.startswith("{")]


CODES = [17, 29, 23, 31]


async def use(service, stream) -> str:
    """Have a stream refused and a clip decoded, with the key in a wrong place too; return the stream's session."""
    async with stream(service, "mode=decode&levels=4&codes=json", additional_headers=HEADERS) as client:
        session = (await client.until("ready"))["session"]
        await client.send("codes", codes=CODES)
        await client.receive()
        await client.connection.send('{"type": "a-word-of-the-client"}')
        await client.closing()
    async with httpx.AsyncClient(base_url=service.url, headers=HEADERS) as http:
        body = np.array(CODES, "<u2").tobytes()
        answer = await http.post("/v1/decode?levels=4", content=body, headers={"content-type": "application/octet-stream"})
        assert answer.status_code == 200
        assert (await http.get("/v1/nothing", params={"token": SECRET})).status_code == 404
        await http.get("/healthz")
    assert service.stop() == 0
    return session


async def test_lines_name_their_session(used, stream):
    session = await use(used, stream)
    found = events(used)
    # All but the two lines that announce the start.
    assert len(used.log.splitlines()) - len(found) == 2
    mine = [line for line in found if line.get("session") == session]
    assert any("refused: protocol" in line["event"] for line in mine)
    assert {line["client"] for line in mine} == {"127.0.0.1"}
    requests = {line["path"]: line for line in found if line["event"] == "request"}
    assert {path: (line["status"], line["level"]) for path, line in requests.items()} == {
        "/v1/decode": (200, "info"),
        "/v1/nothing": (404, "info"),
        "/healthz": (200, "debug"),
    }
    assert requests["/v1/decode"]["received_bytes"] == 8
    assert requests["/v1/decode"]["sent_bytes"] == 44 + 2 * 1920


async def test_lines_hold_no_payload_no_key_and_no_query(used, stream):
    await use(used, stream)
    for secret in (SECRET, str(CODES)[1:-1], "levels=4", "token="):
        assert secret not in used.log


async def metrics_at_rest(http) -> httpx.Response:
    """Ask for the metrics until the streams are gone."""
    for _ in range(250):
        answer = await http.get("/metrics", headers=HEADERS)
        if 'mimi_sessions{kind="stream"} 0.0' in answer.text:
            return answer
        await asyncio.sleep(0.02)
    raise AssertionError("a place stayed taken")


async def test_metrics_tell_what_happened(used, stream, tiny_model):
    async with httpx.AsyncClient(base_url=used.url) as http:
        assert (await http.get("/metrics")).status_code == 401
        async with stream(used, "mode=echo&levels=2", additional_headers=HEADERS) as client:
            await client.until("ready")
            await client.connection.send(bytes(3 * 3840))
            await client.send("flush")
            await client.until("flushed")
        async with stream(used, "levels=1", additional_headers=HEADERS) as client:
            await client.until("ready")
            await client.connection.send(bytes(70_000))
            await client.closing()
        answer = await metrics_at_rest(http)
    assert answer.headers["content-type"].startswith("text/plain")
    lines = answer.text.splitlines()
    # The self-test has made three frames of each direction.
    assert {
        'mimi_admissions_total{kind="stream"} 2.0',
        'mimi_errors_total{code="message_too_big",transport="websocket"} 1.0',
        'mimi_errors_total{code="unauthorized",transport="http"} 1.0',
        'mimi_http_requests_total{method="GET",status="401"} 1.0',
        'mimi_ready{check="self_test"} 1.0',
        "mimi_queued_frames 0.0",
        "mimi_unsent_bytes 0.0",
        'mimi_frames_total{step="encode"} 6.0',
        'mimi_frames_total{step="decode"} 6.0',
    } <= set(lines)
    assert f'isa="{tiny_model.info.isa}"' in answer.text
    assert f'sha256="{tiny_model.info.sha256}"' in answer.text
