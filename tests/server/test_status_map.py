from __future__ import annotations

import inspect

import pytest

import server.errors
from codec_core.errors import InternalError, error_classes
from server.errors import CapacityError, ServiceError
from server.status_map import STATUS_MAP, answer_for, as_codec_error, error_fields

CLOSE_CODES = {1003, 1007, 1008, 1009, 1011, 1012, 1013}


def test_every_error_has_a_row_and_every_row_an_error():
    assert set(STATUS_MAP) == set(error_classes())


@pytest.mark.parametrize("code", STATUS_MAP)
def test_rows_are_of_use(code):
    answer = STATUS_MAP[code]
    assert 400 <= answer.http_status < 600
    assert answer.close_code in CLOSE_CODES
    assert answer.reason.endswith(".")
    assert len(code.encode()) <= 123  # what a close frame has room for
    assert (answer.http_status >= 500 and answer.http_status not in (501, 503)) == (answer.close_code == 1011)


def test_the_tree_in_the_docstring_is_the_tree():
    for code, cls in error_classes().items():
        if issubclass(cls, ServiceError):
            assert cls.__name__ in inspect.getdoc(server.errors)
            assert cls is ServiceError or f" {code} " in inspect.getdoc(server.errors)


def test_an_error_of_the_tree_stays_and_any_other_hides_its_text():
    known = CapacityError("streams", retry_after_ms=7)
    assert as_codec_error(known) is known
    hidden = as_codec_error(RuntimeError("the secret"))
    assert isinstance(hidden, InternalError)
    assert "secret" not in str(error_fields(hidden))
    assert answer_for(hidden).http_status == 500


def test_what_a_peer_sent_is_cut_and_escaped():
    fields = error_fields(CapacityError("a\ud800b", "x" * 3_000_000, "y" * 301, retry_after_ms=7))
    assert fields["subject"] == "a\\ud800b"
    assert fields["found"] == "x" * 300 + "..."
    assert fields["expected"] == "y" * 300 + "..."
    assert fields["message"] == f"a\\ud800b: found {fields['found']}, expected {fields['expected']}"


def test_fields_name_subject_found_and_expected():
    fields = error_fields(CapacityError("streams", "2", "a free place", retry_after_ms=7))
    assert fields == {
        "code": "capacity",
        "reason": STATUS_MAP["capacity"].reason,
        "message": "streams: found 2, expected a free place",
        "subject": "streams",
        "found": "2",
        "expected": "a free place",
        "retry_after_ms": 7,
    }
