"""The files of the pages as they are served: types, caching, policy; and that they load nothing from elsewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib import resources

import httpx
import pytest

from server.page_endpoint import MEDIA, SECURITY_HEADERS, WEB_FILES

WEB = resources.files("server") / "web"
NAMESPACES = {"http://www.w3.org/2000/svg"}
EXAMPLES = {"http://localhost", "http://localhost:8000."}
MOST_LINES = 300


def names(suffix: str) -> list[str]:
    return sorted(name for name in WEB_FILES if name.endswith(suffix))


def test_every_file_of_the_package_is_served():
    assert {entry.name for entry in WEB.iterdir() if entry.name != "__pycache__"} == set(WEB_FILES)


@pytest.mark.parametrize("name", sorted(WEB_FILES))
def test_a_file_comes_with_its_type_its_policy_and_its_tag(service, name):
    path = {"index.html": "/", "docs.html": "/docs"}.get(name, f"/web/{name}")
    answer = httpx.get(service.url + path)
    assert (answer.status_code, answer.content) == (200, (WEB / name).read_bytes())
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


@pytest.mark.parametrize("name", sorted(WEB_FILES))
def test_no_file_names_another_host(name):
    found = set(re.findall(r"(?:https?|wss?):[^\s'\"`)>]*", WEB_FILES[name].content.decode()))
    assert found - NAMESPACES - EXAMPLES <= {"https:", "wss:", "ws:"}


@pytest.mark.parametrize("name", names(".html"))
def test_pages_hold_no_script_and_no_style_of_their_own(name):
    page = WEB_FILES[name].content.decode()
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)|javascript:", page)
    for link in re.findall(r'(?:href|src)="web/([^"]+)"', page):
        assert link in WEB_FILES


@pytest.mark.parametrize("name", names(".js"))
def test_modules_import_only_one_another_and_are_short(name):
    source = WEB_FILES[name].content.decode()
    for imported in re.findall(r"^import .* from '([^']+)'", source, re.MULTILINE):
        assert imported.removeprefix("./") in WEB_FILES
    assert len(source.splitlines()) <= MOST_LINES
    assert source.startswith("// @ts-check\n")


@pytest.mark.skipif(shutil.which("node") is None, reason="no node on PATH")
def test_modules_are_well_formed():
    for name in names(".js"):
        done = subprocess.run(
            ["node", "--input-type=module", "--check"], input=WEB_FILES[name].content, capture_output=True, check=False
        )
        assert done.returncode == 0, (name, done.stderr.decode())
