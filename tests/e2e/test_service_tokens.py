"""Short-lived tokens: from a key to a stream that a browser may open, and every way in which one is not good."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import httpx
import numpy as np
import pytest
import websockets

from codec_core.clip import encode_clip
from server.access_token import SCOPES

KEY, OTHER = "a-key-of-the-tests", "another-key-of-them"
OCTETS = {"content-type": "application/octet-stream"}


@pytest.fixture
def guarded(start_service, monkeypatch):
    monkeypatch.setenv("MIMI_API_KEYS", f"{KEY},{OTHER}")
    monkeypatch.setenv("MIMI_SECRET", "shared by the replicas")
    return start_service()


def token_of(service, key: str = KEY, **fields: object) -> str:
    answer = httpx.post(f"{service.url}/v1/token", params=fields, headers={"x-api-key": key})
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    return str(answer.json()["token"])


def code_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


async def test_a_stream_with_a_token_is_served_and_the_token_is_not_logged(guarded, stream, speech, tiny_model):
    token = token_of(guarded, scope="stream")
    for query in (f"levels=4&token={token}", f"token={token}&levels=4"):
        async with stream(guarded, query) as client:
            await client.until("ready")
            for piece in np.array_split(speech, 5):
                await client.connection.send(piece.tobytes())
            await client.send("flush")
            await client.until("flushed")
        assert np.array_equal(client.codes(), encode_clip(tiny_model, speech, 4))
    async with stream(guarded, f"token={token}") as client:
        await client.send("hello", levels=2)
        await client.until("ready")
    assert "stream" in guarded.log
    assert "token=" not in guarded.log
    assert token not in guarded.log


async def test_a_handshake_with_a_token_that_is_not_good_is_refused(guarded):
    for token, status, code in (
        ("1.e30.AAAA", 401, "unauthorized"),
        (token_of(guarded, scope="convert"), 403, "token_scope"),
    ):
        with pytest.raises(websockets.InvalidStatus) as refusal:
            await websockets.connect(guarded.stream_url(f"levels=1&token={token}"))
        answer = refusal.value.response
        assert (answer.status_code, json.loads(answer.body)["error"]["code"]) == (status, code)
        assert token not in guarded.log


def test_each_scope_opens_its_part(guarded, speech):
    calls = {"convert": ("POST", "/v1/encode?levels=1"), "info": ("GET", "/v1/info")}
    for scope in ("convert", "info", "stream", ",".join(SCOPES)):
        token = token_of(guarded, scope=scope)
        for needed, (method, path) in calls.items():
            answer = httpx.request(
                method, f"{guarded.url}{path}", params={"token": token}, headers=OCTETS, content=speech.tobytes()
            )
            assert answer.status_code == (200 if needed in scope else 403)


def test_a_token_gets_no_token(guarded):
    refused = httpx.post(f"{guarded.url}/v1/token", params={"token": token_of(guarded)})
    assert code_of(refused) == (403, "token_scope")
    assert "a key" in refused.json()["error"]["expected"]
    assert code_of(httpx.post(f"{guarded.url}/v1/token")) == (401, "unauthorized")


def test_what_is_asked_of_a_token_is_checked(guarded):
    with httpx.Client(base_url=guarded.url, headers={"authorization": f"Bearer {KEY}"}) as http:
        for query in ("scope=all", "scope=", "lifetime_ms=999", "lifetime_ms=300001", "lifetime_ms=-1", "lifetime_ms=1e4",
                      "colour=red", "scope=info&scope=info"):  # fmt: skip
            assert code_of(http.post(f"/v1/token?{query}")) == (400, "setting"), query
        body = http.post("/v1/token?scope=info,stream,info&lifetime_ms=1000").json()
        assert (body["scope"], body["lifetime_ms"]) == ("info,stream", 1000)
        assert http.post("/v1/token").json()["lifetime_ms"] == 300_000


def test_a_wrong_key_beside_a_right_token_may_be_a_proxys(guarded):
    token = token_of(guarded)
    headers = {"authorization": "Bearer of-the-proxy"}
    assert httpx.get(f"{guarded.url}/v1/info", params={"token": token}, headers=headers).status_code == 200
    two = httpx.get(f"{guarded.url}/v1/info?token={token}&token={token}")
    assert code_of(two) == (401, "unauthorized")


def test_replicas_of_one_secret_take_each_others_until_the_key_is_gone(guarded, start_service, monkeypatch):
    token, other = token_of(guarded), token_of(guarded, OTHER)
    monkeypatch.setenv("MIMI_API_KEYS", KEY)
    replica = start_service()
    assert httpx.get(f"{replica.url}/v1/info", params={"token": token}).status_code == 200
    gone = httpx.get(f"{replica.url}/v1/info", params={"token": other})
    assert code_of(gone) == (401, "unauthorized")
    assert gone.json()["error"]["found"] == "one of a key that is no more"
    monkeypatch.delenv("MIMI_SECRET")
    stranger = start_service()
    assert code_of(httpx.get(f"{stranger.url}/v1/info", params={"token": token})) == (401, "unauthorized")


async def test_a_service_without_keys_gives_tokens_and_needs_none(service, stream):
    async with httpx.AsyncClient(base_url=service.url) as http:
        token = (await http.post("/v1/token")).json()["token"]
        for given in (token, "anything"):
            assert (await http.get(f"/v1/info?token={given}")).status_code == 200
            async with stream(service, f"levels=1&token={given}") as client:
                await client.until("ready")


def test_pages_of_other_origins_get_no_token(guarded):
    refused = httpx.post(f"{guarded.url}/v1/token", headers={"x-api-key": KEY, "origin": "http://evil.example"})
    assert code_of(refused) == (403, "forbidden_origin")


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"MIMI_SECRET": "short"}, "secret: found 5 characters, expected at least 16"),
        ({"MIMI_API_KEYS_FILE": "missing"}, "api_keys_file: found missing: No such file or directory"),
        ({"MIMI_TLS_CERT": "missing.pem"}, "tls_cert: found missing.pem: No such file or directory"),
    ],
)
def test_what_is_not_fit_for_use_stops_the_start(tiny_model_path, tmp_path, variables, says):
    command = [sys.executable, "-P", "-m", "server", "--port", "0", "--model", str(tiny_model_path)]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, **variables}, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 2
    assert says in done.stderr.replace("\n", " ")
