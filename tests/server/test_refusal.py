from __future__ import annotations

import json

import pytest

from codec_core.errors import error_classes
from server.errors import CapacityError, ServiceError
from server.refusal import ERROR_HEADER, refusal_response
from server.status_map import STATUS_MAP


@pytest.mark.parametrize("code", STATUS_MAP)
def test_every_error_has_its_answer(code):
    answer = refusal_response(error_classes()[code]("subject", "found", "expected"))
    assert answer.status_code == STATUS_MAP[code].http_status
    assert answer.headers[ERROR_HEADER] == code
    assert json.loads(answer.body)["error"]["code"] == code
    assert "retry-after" not in answer.headers


def test_when_to_come_back_is_rounded_up():
    answer = refusal_response(CapacityError("streams", retry_after_ms=1001), {"x-more": "1"})
    assert (answer.headers["retry-after"], answer.headers["x-more"]) == ("2", "1")
    assert "retry-after" not in refusal_response(ServiceError("service")).headers
