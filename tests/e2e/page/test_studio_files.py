"""The files of the pages as they are served: types, caching, policy; and that they load nothing from elsewhere."""

from __future__ import annotations

import io
import json
import re
import tarfile
from importlib import resources

import httpx
import pytest

from server.page_endpoint import EXAMPLE, MEDIA, SECURITY_HEADERS, WEB_FILES

WEB = resources.files("server") / "web" / "static"
NAMESPACES = {"http://www.w3.org/2000/svg"}
EXAMPLES = {"http://localhost", "http://localhost:8000."}
MOST_SCRIPT_BYTES = 200_000


def names(suffix: str) -> list[str]:
    return sorted(name for name in WEB_FILES if name.endswith(suffix))


def test_every_file_of_the_package_is_served():
    assert {entry.name for entry in WEB.iterdir()} | {EXAMPLE[2]} == set(WEB_FILES)


@pytest.mark.parametrize("name", sorted(WEB_FILES))
def test_a_file_comes_with_its_type_its_policy_and_its_tag(service, name):
    path = {"index.html": "/", "docs.html": "/docs"}.get(name, f"/web/{name}")
    answer = httpx.get(service.url + path)
    assert (answer.status_code, answer.content) == (200, WEB_FILES[name].content)
    assert answer.headers["content-type"] == MEDIA[name[name.rindex(".") :]]
    assert answer.headers["cache-control"] == "no-cache"
    assert SECURITY_HEADERS.items() <= dict(answer.headers).items()
    known = {"if-none-match": answer.headers["etag"]}
    again = httpx.get(service.url + path, headers=known)
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", answer.headers["etag"])
    head = httpx.head(service.url + path)
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(len(answer.content)))


@pytest.mark.parametrize("path", ["/web/", "/web/none.js", "/web/..%2fapp.py", "/web/%2e%2e/app.py", "/web/%2fetc%2fpasswd"])
def test_nothing_else_is_served(service, path):
    answer = httpx.get(service.url + path)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"


def test_the_policy_lets_in_nothing_from_elsewhere():
    policy = dict(part.strip().split(" ", 1) for part in SECURITY_HEADERS["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert set(policy.values()) == {"'none'", "'self'"}


@pytest.mark.parametrize("name", [name for name in sorted(WEB_FILES) if MEDIA[name[name.rindex(".") :]].startswith("text/")])
def test_no_file_names_another_host(name):
    found = set(re.findall(r"(?:https?|wss?):[^\s'\"`)>]*", WEB_FILES[name].content.decode()))
    assert {url for url in found if "//" in url and "HOST" not in url} - NAMESPACES - EXAMPLES <= {
        "https://",
        "wss://",
        "ws://",
        "http://",
    }


@pytest.mark.parametrize("name", names(".html"))
def test_pages_hold_no_script_and_no_style_of_their_own(name):
    page = WEB_FILES[name].content.decode()
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)|javascript:", page)
    for link in re.findall(r'(?:href|src)="web/([^"]+)"', page):
        assert link in WEB_FILES


def test_scripts_are_whole_and_small():
    sizes = {name: len(WEB_FILES[name].content) for name in names(".js")}
    assert set(sizes) == {"capture-worklet.js", "client.js", "docs.js", "player-worklet.js", "studio.js"}
    assert sum(sizes.values()) < MOST_SCRIPT_BYTES
    for name in sizes:
        assert not re.search(r"^\s*import\b|\bimport\(", WEB_FILES[name].content.decode(), re.MULTILINE), name


def test_the_package_is_that_of_npm():
    with tarfile.open(fileobj=io.BytesIO(WEB_FILES["mimi-client.tgz"].content)) as package:
        held = {member.name for member in package.getmembers()}
        described = json.load(package.extractfile("package/package.json"))
    assert {"package/package.json", "package/README.md", "package/dist/index.js", "package/dist/index.d.ts"} <= held
    assert "dependencies" not in described
    assert f"package/{described['types'].removeprefix('./')}" in held
