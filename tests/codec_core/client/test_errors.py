from __future__ import annotations

import json

import pytest

from codec_core.client.errors import RemoteError, closed_unasked, refusal, refused_handshake, retry_after_ms
from codec_core.errors import CodecError, CodeRangeError, SettingError, UnavailableError
from server.errors import CapacityError
from server.status_map import STATUS_MAP, error_fields

FACTS = {"subject": "codes[0]", "found": "99", "expected": "0 .. 31"}


def test_what_the_library_raises_too_comes_as_the_same_class():
    error = refusal({"code": "code_range", **FACTS})
    assert type(error) is CodeRangeError
    assert str(error) == "codes[0]: found 99, expected 0 .. 31"
    assert retry_after_ms(error) is None


def test_every_code_of_the_service_comes_back_as_itself():
    for code, answer in STATUS_MAP.items():
        error = refusal({"code": code, "reason": answer.reason, **FACTS})
        assert error.code == code
        assert isinstance(error, RemoteError) or type(error).__module__ == "codec_core.errors"


def test_what_only_a_service_has_is_remote_with_its_wait():
    sent = error_fields(CapacityError("streams", "2 of 2 places taken", "a free place", retry_after_ms=1234))
    error = refusal(sent)
    assert isinstance(error, RemoteError)
    assert (error.code, error.reason, retry_after_ms(error)) == ("capacity", STATUS_MAP["capacity"].reason, 1234)
    assert str(error) == sent["message"]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"code": 7},
        {"code": None, "subject": []},
        {"code": "x", "retry_after_ms": True},
        {"code": "x", "retry_after_ms": -1},
    ],
)
def test_whatever_comes_is_an_error(fields):
    error = refusal(fields)
    assert isinstance(error, CodecError)
    assert retry_after_ms(error) is None
    assert len(str(refusal({"code": "x", "subject": "s" * 100_000}))) < 1000


def test_handshakes():
    body = json.dumps({"error": {"code": "unauthorized", **FACTS}}).encode()
    assert refused_handshake(401, body).code == "unauthorized"
    for nothing in (None, b"", b"<html>", b"[]", b'{"error": 3}', b"[" * 100_000):
        error = refused_handshake(502, nothing)
        assert type(error) is UnavailableError
        assert "502" in str(error)


def test_ends_without_a_message():
    assert closed_unasked(1008, "too_slow").code == "too_slow"
    assert type(closed_unasked(1008, "setting")) is SettingError
    assert type(closed_unasked(None, "")) is UnavailableError
    assert "1002" in str(closed_unasked(1002, "not an identifier"))
