"""What browsers hear of pages of other origins: those on the allow-list may call, send a key and read the answer's facts."""

from __future__ import annotations

from typing import Final

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware

from server.settings import Settings

METHODS: Final = ("GET", "HEAD", "POST")
REQUEST_HEADERS: Final = ("Accept", "Authorization", "Content-Type", "X-API-Key")
ANSWER_HEADERS: Final = ("Content-Length", "Retry-After", "X-Mimi-Frames", "X-Mimi-Levels", "X-Mimi-Samples", "X-Mimi-Warning")
"""What a page may read beside the few headers that every page may."""


def allow_origins(app: FastAPI, settings: Settings) -> None:
    """Answer preflights, and mark answers, for the allow-list. Without one, browsers let no page of another origin in.

    No page sends cookies or a browser's stored passwords: the service has none of either.
    """
    if settings.origin_allow_list:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.origin_allow_list,
            allow_methods=METHODS,
            allow_headers=REQUEST_HEADERS,
            expose_headers=ANSWER_HEADERS,
            allow_credentials=False,
            max_age=settings.cors_max_age_ms // 1000,
        )
