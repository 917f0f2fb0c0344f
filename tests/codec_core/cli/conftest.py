"""Runs ``mimi`` in this process, and as a process of its own; and a server that speaks the hub's protocol."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from codec_core.cli.main import run

REVISION = "0123456789abcdef0123456789abcdef01234567"


@dataclass(frozen=True)
class Outcome:
    status: int
    output: str
    errors: str


@pytest.fixture
def mimi(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """mimi(*arguments) runs a command in this process."""

    def call(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["mimi", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "120")
        with pytest.raises(SystemExit) as exit_:
            run()
        captured = capsys.readouterr()
        return Outcome(int(exit_.value.code or 0), captured.out, captured.err)

    return call


@pytest.fixture
def mimi_process(tmp_path: Path) -> Callable[..., subprocess.Popen[bytes]]:
    """mimi_process(*arguments, path=...) starts the installed command; path goes before everything Python imports from."""

    def start(*arguments: object, path: Path | None = None) -> subprocess.Popen[bytes]:
        environment = dict(os.environ)
        if path is not None:
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(path), environment.get("PYTHONPATH")]))
        command = [str(Path(sys.executable).with_name("mimi")), *map(str, arguments)]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, cwd=tmp_path)

    return start


@dataclass
class Hub:
    """What the server has, and what it was asked."""

    files: dict[str, bytes] = field(default_factory=dict)
    """By ``owner/name/file``."""
    cut_after_bytes: list[int] = field(default_factory=list)
    """The next downloads end after so many bytes, as if the line had been cut."""
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Method, file and range of each request."""
    port: int = 0
    commit_header: str = "X-Repo-Commit"

    @property
    def downloads(self) -> list[str]:
        return [f"{file} {wanted}" if wanted else file for method, file, wanted in self.requests if method == "GET"]


class Handler(BaseHTTPRequestHandler):
    """``/OWNER/NAME/resolve/REVISION/FILE``, with the headers that tell a revision, a size and a hash."""

    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        data, start = self.answer()
        if data is None:
            return
        end = len(data)
        if self.hub.cut_after_bytes:
            end = start + self.hub.cut_after_bytes.pop(0)
            self.close_connection = True
        self.wfile.write(data[start:end])

    def answer(self) -> tuple[bytes | None, int]:
        match = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/([^?]+)", self.path)
        repository, revision, name = match.groups() if match else ("", "", "")
        wanted = self.headers.get("Range")
        self.hub.requests.append((self.command, name, wanted))
        data = self.hub.files.get(f"{repository}/{name}") if revision == REVISION else None
        if data is None:
            self.send_response(404)
            self.send_header("X-Error-Code", "EntryNotFound" if revision == REVISION else "RevisionNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return None, 0
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        self.send_response(206 if wanted else 200)
        if wanted:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - start))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header(self.hub.commit_header, REVISION)
        self.send_header("ETag", f'"{hashlib.sha256(data).hexdigest()}"')
        self.end_headers()
        return data, start


@pytest.fixture
def hub(tiny_checkpoint: Path, tiny_transformers: Path) -> Iterator[Hub]:
    hub = Hub()
    hub.files = {
        "someone/tiny/tiny.safetensors": tiny_checkpoint.read_bytes(),
        "someone/theirs/model.safetensors": (tiny_transformers / "model.safetensors").read_bytes(),
        "someone/theirs/config.json": (tiny_transformers / "config.json").read_bytes(),
    }
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"hub": hub}))
    server.daemon_threads = True
    hub.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield hub
    server.shutdown()
    thread.join()
    server.server_close()
