"""A service with keys: who gets in, who does not, and how a refusal reads."""

from __future__ import annotations

import json

import httpx
import numpy as np
import pytest
import websockets

from codec_core.clip import encode_clip
from server.access import OPEN_PATHS
from server.api_keys import EXPECTED
from server.settings import Settings

KEYS = ("first-key", "zweiter-schlüssel")
RIGHT = [
    {"Authorization": f"Bearer {KEYS[0]}"},
    {"Authorization": f"bearer  {KEYS[0]}"},
    {"X-API-Key": KEYS[0]},
    {"X-API-Key": KEYS[1].encode()},
    {"Authorization": "Basic the-proxy-s-own", "X-API-Key": KEYS[0]},
]
WRONG = {
    "none": [{}, {"Authorization": f"Basic {KEYS[0]}"}, {"Authorization": KEYS[0]}, {"Cookie": f"key={KEYS[0]}"}],
    "an unknown one": [
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Bearer"},
        {"Authorization": f"Bearer {KEYS[0]},{KEYS[0]}"},
        {"X-API-Key": ""},
        {"X-API-Key": KEYS[0][:-1]},
        {"X-API-Key": KEYS[0].upper()},
    ],
}


@pytest.fixture
def guarded(start_service, monkeypatch):
    monkeypatch.setenv("MIMI_API_KEYS", f" {KEYS[0]} ,{KEYS[1]},")
    return start_service()


def assert_unauthorized(answer, found):
    error = json.loads(answer.content if isinstance(answer, httpx.Response) else answer.body)["error"]
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert (error["code"], error["subject"], error["found"], error["expected"]) == ("unauthorized", "key", found, EXPECTED)


def test_requests(guarded):
    """ANCHORS E4: the refusal names the headers that were expected."""
    with httpx.Client(base_url=guarded.url) as client:
        for headers in RIGHT:
            assert client.get("/v1/info", headers=headers).status_code == 200, headers
        for found, cases in WRONG.items():
            for headers in cases:
                assert_unauthorized(client.get("/v1/info", headers=headers), found)
        for call in ("/v1/encode", "/encode", "/v1/decode", "/decode", "/no/such/path", "/healthz/", "/web"):
            assert_unauthorized(client.post(call, content=bytes(100_000)), "none")
        repeated = [(b"X-API-Key", b"wrong"), (b"X-API-Key", KEYS[1].encode())]
        assert client.get("/v1/info", headers=repeated).status_code == 200


def test_what_stays_open_does_no_work_and_tells_nothing(guarded):
    with httpx.Client(base_url=guarded.url) as client:
        for path in (*OPEN_PATHS, "/web/studio.js"):
            answer = client.get(path)
            assert answer.status_code == 200, path
            assert not any(key in answer.text for key in KEYS)
        assert client.get("/web/../v1/info").status_code == 401
    assert not any(key in guarded.log for key in KEYS)


async def test_a_handshake_without_a_key_is_refused_before_it_is_accepted(guarded):
    """ANCHORS 3.4, E4: no key, no connection."""
    for found, cases in WRONG.items():
        for headers in cases:
            with pytest.raises(websockets.InvalidStatus) as refusal:
                await websockets.connect(guarded.stream_url("levels=1"), additional_headers=headers)
            assert_unauthorized(refusal.value.response, found)
    assert "ERROR" not in guarded.log


async def test_a_stream_with_a_key_is_served(guarded, stream, speech, tiny_model):
    async with stream(guarded, "levels=4", additional_headers={"Authorization": f"Bearer {KEYS[0]}"}) as client:
        for chunk in np.array_split(speech, 9):
            await client.connection.send(chunk.tobytes())
        await client.send("flush")
        await client.until("flushed")
    assert np.array_equal(client.codes(), encode_clip(tiny_model, speech.astype(np.float32) / 32768, 4))


def test_pages_of_allowed_origins_may_ask_for_leave_and_read_the_refusal(start_service, monkeypatch):
    monkeypatch.setenv("MIMI_API_KEYS", KEYS[0])
    service = start_service("--allowed-origins", "http://one.example")
    asking = {"Origin": "http://one.example", "Access-Control-Request-Method": "POST"}
    asking["Access-Control-Request-Headers"] = "authorization"
    assert httpx.options(f"{service.url}/v1/encode", headers=asking).status_code == 200
    refused = httpx.post(f"{service.url}/v1/encode", headers={"Origin": "http://one.example"})
    assert_unauthorized(refused, "none")
    assert refused.headers["access-control-allow-origin"] == "http://one.example"


def test_keys_lift_the_limit_to_loopback(start_service, monkeypatch):
    monkeypatch.setenv("MIMI_API_KEYS", KEYS[0])
    service = start_service("--host", "0.0.0.0")
    url = f"http://127.0.0.1:{service.url.rsplit(':', 1)[1]}"
    assert httpx.get(f"{url}/v1/info").status_code == 401
    assert httpx.get(f"{url}/v1/info", headers={"X-API-Key": KEYS[0]}).status_code == 200


def test_keys_do_not_show_where_settings_are_printed():
    settings = Settings(api_keys=",".join(KEYS))
    assert settings.api_key_list == KEYS
    assert not any(key in repr(settings) + str(settings) for key in KEYS)
