"""What browsers are told of pages of other origins."""

from __future__ import annotations

import httpx
import pytest

from server.cors import ANSWER_HEADERS, METHODS, REQUEST_HEADERS

PAGE = "https://page.example"
OCTETS = {"content-type": "application/octet-stream"}


def preflight(service, origin: str, method: str = "POST", headers: str = "authorization,content-type") -> httpx.Response:
    asking = {"origin": origin, "access-control-request-method": method, "access-control-request-headers": headers}
    return httpx.options(f"{service.url}/v1/encode", headers=asking)


@pytest.fixture
def allowing(start_service):
    return start_service("--allowed-origins", f"{PAGE},http://other.example", "--cors-max-age-ms", "90000")


def test_an_allowed_page_may_ask_and_send_a_key(allowing):
    for method in METHODS:
        answer = preflight(allowing, PAGE, method, ",".join(REQUEST_HEADERS).lower())
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == PAGE
        assert answer.headers["access-control-max-age"] == "90"
        assert "access-control-allow-credentials" not in answer.headers


@pytest.mark.parametrize(
    ("origin", "method", "headers"),
    [("https://evil.example", "POST", "content-type"), (PAGE, "DELETE", "content-type"), (PAGE, "POST", "x-anything")],
)
def test_anything_else_is_not_allowed(allowing, origin, method, headers):
    assert preflight(allowing, origin, method, headers).status_code == 400


def test_an_allowed_page_reads_the_facts_of_an_answer_and_of_a_refusal(allowing):
    for query, status in (("levels=1", 200), ("levels=99", 400)):
        answer = httpx.post(f"{allowing.url}/v1/encode?{query}", content=bytes(3840), headers={**OCTETS, "origin": PAGE})
        assert answer.status_code == status
        assert answer.headers["access-control-allow-origin"] == PAGE
        exposed = answer.headers["access-control-expose-headers"].split(", ")
        assert set(exposed) == set(ANSWER_HEADERS)
    assert {"x-mimi-levels", "x-mimi-frames", "x-mimi-samples"} <= {name.lower() for name in ANSWER_HEADERS}


def test_without_a_list_no_page_of_another_origin_is_told_anything(service):
    assert preflight(service, PAGE).status_code == 405
    answer = httpx.get(f"{service.url}/v1/info", headers={"origin": PAGE})
    assert not [name for name in answer.headers if name.startswith("access-control")]
