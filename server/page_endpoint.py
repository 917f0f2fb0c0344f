"""The pages for a person: ``/`` (the codec, live, in a browser) and ``/docs`` (the REST calls), and the files they are made of.

The files lie in ``server/web/static`` inside the package, made by ``server/web/build.mjs``, and are read once, at start; no
path of a request ever reaches the file system. The pages load nothing from elsewhere, and a strict policy holds them to it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources
from typing import Final

from fastapi import APIRouter, Request, Response

from server.errors import NotFoundError
from server.wire_settings import quoted

MEDIA: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".tgz": "application/gzip",
    ".wav": "audio/wav",
}
EXAMPLE: Final = ("codec_core", "vectors/default/signals/sample_2.wav", "example.wav")
"""Package and file of the recording that the page plays, and what it is called there."""
SECURITY_HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "permissions-policy": "microphone=(self), camera=(), geolocation=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
CACHING: Final = "no-cache"
"""Kept, but asked about every time, so that a page never mixes files of two versions; unchanged, it costs a 304."""


@dataclass(frozen=True)
class WebFile:
    """One file of the pages, as it is served."""

    content: bytes
    media_type: str
    etag: str


def read_web_files() -> dict[str, WebFile]:
    """Read every file of the pages; the key is its name."""
    entries = {entry.name: entry for entry in resources.files("server").joinpath("web/static").iterdir()}
    package, path, name = EXAMPLE
    entries[name] = resources.files(package).joinpath(path)
    return {name: _web_file(name, entry.read_bytes()) for name, entry in entries.items() if _suffix(name) in MEDIA}


def _web_file(name: str, content: bytes) -> WebFile:
    return WebFile(content, MEDIA[_suffix(name)], f'"{hashlib.sha256(content).hexdigest()[:32]}"')


def _suffix(name: str) -> str:
    return name[name.rfind(".") :]


WEB_FILES: Final = read_web_files()
router = APIRouter()


@router.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
async def page(request: Request) -> Response:
    """Show the codec at work."""
    return _answer(request, "index.html")


@router.api_route("/docs", methods=["GET", "HEAD"], include_in_schema=False)
async def reference(request: Request) -> Response:
    """Show the REST calls, drawn from ``/openapi.json``."""
    return _answer(request, "docs.html")


@router.api_route("/web/{name}", methods=["GET", "HEAD"], include_in_schema=False)
async def web_file(request: Request, name: str) -> Response:
    """Serve one file of the pages."""
    return _answer(request, name)


def _answer(request: Request, name: str) -> Response:
    file = WEB_FILES.get(name)
    if file is None:
        raise NotFoundError("path", found=quoted(request.url.path), expected="a file of the pages")
    headers = {**SECURITY_HEADERS, "cache-control": CACHING, "etag": file.etag}
    if file.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.media_type, headers=headers)
