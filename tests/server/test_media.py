from __future__ import annotations

import pytest

from server.errors import NotAcceptableError, UnsupportedMediaError
from server.media import CODES_MEDIA, accepted_media, content_media

MADE = tuple(CODES_MEDIA)


@pytest.mark.parametrize(
    ("header", "chosen"),
    [
        (None, "application/json"),
        ("*/*", "application/json"),
        ("application/*", "application/json"),
        ("application/x-npy", "application/x-npy"),
        ("Application/X-NPY ; q=0.5, application/x-mimi", "application/x-mimi"),
        ("", "application/json"),
        ("application/json;q=0.1, */*;q=0.2", "application/octet-stream"),
        ("application/json;q=0, application/*", "application/octet-stream"),
        ("text/html, application/octet-stream;q=0.9, */*;q=0.8", "application/octet-stream"),
        ("application/json;q=0, application/x-mimi;q=0.01", "application/x-mimi"),
    ],
)
def test_accept_chooses(header, chosen):
    assert accepted_media(header, MADE) == chosen


@pytest.mark.parametrize("header", ["text/html", "application/json;q=0", "application/json;q=high", "audio/*", ";;,,"])
def test_nothing_acceptable_is_refused(header):
    with pytest.raises(NotAcceptableError):
        accepted_media(header, MADE)


def test_content_type_without_its_parameters():
    assert content_media("Application/JSON; charset=utf-8", MADE) == "application/json"
    for header in (None, "", "text/plain", "application", "application/json x"):
        with pytest.raises(UnsupportedMediaError, match="Content-Type"):
            content_media(header, MADE)
