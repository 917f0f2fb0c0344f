"""Every example of ``/openapi.json`` is what a running service with the embedded model answers."""

from __future__ import annotations

import asyncio
import io
import json
import re
import signal
import struct
import time

import httpx
import jsonschema
import numpy as np
import pytest
import soundfile

from server.openapi import DECODE_CODES, ENCODE_CODES, TOKEN_CODES
from server.openapi_examples import CODES, ERRORS, TOKEN

OCTETS = {"content-type": "application/octet-stream"}
JSON = {"content-type": "application/json"}
WAV = {"content-type": "audio/wav"}
KEY = "a-key-of-the-tests"
SILENCE = bytes(2 * 5000)


def wav_with_nan() -> bytes:
    stream = io.BytesIO()
    samples = np.zeros(5000, np.float32)
    samples[1234] = np.nan
    soundfile.write(stream, samples, 24_000, format="WAV", subtype="FLOAT")
    return stream.getvalue()


REQUESTS = {
    "setting": ("/v1/encode?levels=99", b"", OCTETS),
    "payload": ("/v1/encode", bytes(3), OCTETS),
    "forbidden_origin": ("/v1/encode", b"", {**OCTETS, "origin": "http://other.example"}),
    "not_acceptable": ("/v1/encode", b"", {**OCTETS, "accept": "text/html"}),
    "unsupported_media": ("/v1/encode", b"", {**OCTETS, "content-encoding": "gzip"}),
    "code_range": ("/v1/decode", struct.pack("<32H", *[0, 1024] + [0] * 30), OCTETS),
    "codes_file": ("/v1/decode", b'{"codes":[[1],[1,2]]}', JSON),
    "audio_file": ("/v1/encode", b"", WAV),
    "non_finite_input": ("/v1/encode", wav_with_nan(), WAV),
    "numeric_overflow": ("/v1/encode?format=f32le", np.full(1920, 3e38, "<f4").tobytes(), OCTETS),
    "not_offered": ("/v1/encode?format=opus", b"", OCTETS),
}
ELSEWHERE = {"unauthorized", "token_expired", "token_scope", "body_timeout", "body_too_large", "capacity", "draining"}
"""Those that need a service with settings of its own."""


@pytest.fixture(scope="module")
def default_service(tmp_path_factory, run_service):
    with run_service(tmp_path_factory.mktemp("default"), "default") as running:
        yield running


@pytest.fixture(scope="module")
def document(default_service) -> dict:
    return httpx.get(f"{default_service.url}/openapi.json").json()


def check(document: dict, name: str, body: object) -> None:
    schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
    jsonschema.Draft202012Validator(schema).validate(body)


def assert_example(document: dict, answer: httpx.Response, code: str) -> None:
    """Compare an answer with its example; numbers that come from settings of the test's own aside."""
    check(document, "Error", answer.json())
    assert re.sub(r"\d+", "N", json.dumps(answer.json())) == re.sub(r"\d+", "N", json.dumps(ERRORS[code]))


def test_every_code_of_every_call_has_an_example_and_every_example_is_checked():
    codes = set(ENCODE_CODES) | set(DECODE_CODES) | set(TOKEN_CODES)
    # What a service that is overloaded says depends on how fast it is.
    assert codes - {"overloaded"} == set(ERRORS) == set(REQUESTS) | ELSEWHERE


@pytest.mark.parametrize("code", REQUESTS)
def test_refusals(default_service, document, code):
    path, body, headers = REQUESTS[code]
    answer = httpx.post(f"{default_service.url}{path}", content=body, headers=headers)
    assert answer.json() == ERRORS[code]
    check(document, "Error", answer.json())
    call = document["paths"][path.split("?")[0]]["post"]
    assert call["responses"][str(answer.status_code)]["content"]["application/json"]["examples"][code]["value"] == answer.json()


def test_clips(default_service, document):
    with httpx.Client(base_url=default_service.url) as http:
        codes = http.post("/v1/encode?levels=2", content=SILENCE, headers=OCTETS)
        assert codes.json() == CODES
        check(document, "Codes", codes.json())
        described = document["paths"]["/v1/encode"]["post"]["responses"]["200"]
        assert set(described["headers"]) <= {name.title() for name in codes.headers}
        for media in described["content"]:
            answer = http.post("/v1/encode?levels=2", content=SILENCE, headers={**OCTETS, "accept": media})
            assert (answer.status_code, answer.headers["content-type"]) == (200, media)
        for media in document["paths"]["/v1/decode"]["post"]["responses"]["200"]["content"]:
            answer = http.post("/v1/decode", json=CODES, headers={"accept": media})
            assert (answer.status_code, answer.headers["content-type"]) == (200, media)
            assert answer.headers["x-mimi-samples"] == "5000"


async def test_refusals_of_a_service_with_keys(start_service, document, monkeypatch):
    monkeypatch.setenv("MIMI_API_KEYS", KEY)
    service = start_service()
    async with httpx.AsyncClient(base_url=service.url) as http:
        refused = await http.post("/v1/encode", headers=OCTETS)
        assert refused.json() == ERRORS["unauthorized"]
        asked = await http.post("/v1/token?scope=stream&lifetime_ms=1000", headers={"x-api-key": KEY})
        until_s = time.monotonic() + 1.01
        check(document, "Token", asked.json())
        check(document, "Token", TOKEN)
        query = {"token": asked.json()["token"]}
        refused = await http.post("/v1/encode", params=query, headers=OCTETS)
        assert (refused.status_code, refused.json()) == (403, ERRORS["token_scope"])
        await asyncio.sleep(until_s - time.monotonic())
        refused = await http.post("/v1/encode", params=query, headers=OCTETS)
        assert refused.status_code == 401
        assert_example(document, refused, "token_expired")


async def test_refusals_of_a_service_with_narrow_limits(start_service, document):
    service = start_service(
        "--model", "default", "--max-conversions", "1", "--max-body-bytes", "3000000", "--body-timeout-ms", "1000",
        "--drain-timeout-ms", "4000",
    )  # fmt: skip
    async with httpx.AsyncClient(base_url=service.url) as http:

        async def stalls():
            yield bytes(100)
            await asyncio.sleep(3)

        assert_example(document, await http.post("/v1/encode", content=stalls(), headers=OCTETS), "body_timeout")
        refused = await http.post("/v1/encode", content=bytes(3_000_001), headers=OCTETS)
        assert_example(document, refused, "body_too_large")
        busy = asyncio.create_task(http.post("/v1/encode", content=bytes(2_900_000), headers=OCTETS))
        for _ in range(500):
            if (await http.get("/v1/info")).json()["load"]["conversions"]:
                break
            await asyncio.sleep(0.02)
        refused = await http.post("/v1/encode", content=SILENCE, headers=OCTETS)
        assert_example(document, refused, "capacity")
        assert refused.headers["retry-after"] == "2"
        busy.cancel()


async def test_the_refusal_of_a_service_that_goes_down(start_service, document, stream):
    service = start_service("--drain-timeout-ms", "10000")
    async with stream(service, "levels=1") as client, httpx.AsyncClient(base_url=service.url) as http:
        await client.until("ready")
        service.process.send_signal(signal.SIGTERM)
        await client.until("goaway")
        refused = await http.post("/v1/encode", content=SILENCE, headers=OCTETS)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
        assert_example(document, refused, "draining")
