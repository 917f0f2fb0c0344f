"""Asks a service for what it promises; runs inside the container, with the libraries of the image.

Standard input is a WAV file of 24 kHz, mono, 16 bits. Arguments: the port, and ``key`` or ``open`` for whether the service asks
for one (the first of MIMI_API_KEYS). Prints what it found as one line of JSON; fails when something is not as promised.
"""

from __future__ import annotations

import http.client
import io
import json
import os
import sys
import wave
from typing import Any

import numpy as np
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from codec_core import CodecModel
from codec_core.clip import encode_clip

CHUNK_BYTES = 4_800
FRAME_HEADER_BYTES = 16
UNAUTHORIZED = 401


class PromiseBrokenError(Exception):
    """The service does something else than it should."""


def expect(found: object, expected: object, what: str) -> None:
    """Raise unless both are equal."""
    if found != expected:
        raise PromiseBrokenError(f"{what}: found {found!r}, expected {expected!r}")


class Client:
    """Speaks to the service, with or without a key."""

    def __init__(self, port: int, key: str | None) -> None:
        self._port = port
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}

    def call(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
        """Make a request; return status and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        connection.request(method, path, body, self._headers | headers)
        answer = connection.getresponse()
        return answer.status, answer.read()

    def stream(self, pcm: bytes) -> list[list[int]]:
        """Send a clip as a live stream; return the codes, one list a frame."""
        frames = []
        with connect(f"ws://127.0.0.1:{self._port}/v1/stream?mode=encode", additional_headers=self._headers) as stream:
            for start in range(0, len(pcm), CHUNK_BYTES):
                stream.send(pcm[start : start + CHUNK_BYTES])
            stream.send('{"type": "flush"}')
            for message in stream:
                if isinstance(message, bytes):
                    frames.append(np.frombuffer(message[FRAME_HEADER_BYTES:], "<u2").tolist())
                elif json.loads(message)["type"] == "flushed":
                    break
        return frames


def check_refusals(client: Client) -> None:
    """Without a key, nothing but the probes answers, and the refusal says what is missing."""
    status, body = client.call("GET", "/v1/info")
    expect(status, UNAUTHORIZED, "status of /v1/info without a key")
    expect("X-API-Key" in json.loads(body)["error"]["expected"], True, "the refusal names the header")
    try:
        client.stream(b"")
    except InvalidStatus as refusal:
        expect(refusal.response.status_code, UNAUTHORIZED, "status of a handshake without a key")
    else:
        raise PromiseBrokenError("a stream was served without a key")


def check_service(port: int, key: str | None, clip: bytes) -> dict[str, Any]:
    """Check everything; return facts for a person."""
    with wave.open(io.BytesIO(clip)) as file:
        pcm = file.readframes(file.getnframes())
    nobody, client = Client(port, None), Client(port, key)
    for path in ("/healthz", "/readyz"):
        expect(nobody.call("GET", path)[0], 200, path)
    if key is not None:
        check_refusals(nobody)
    model = CodecModel.open(os.environ["MIMI_MODEL"])
    codes = encode_clip(model, np.frombuffer(pcm, "<i2").astype(np.float32) / 32768)
    expect(client.stream(pcm), codes.T.tolist(), "codes of the stream")
    status, answer = client.call("POST", "/v1/encode", clip, **{"Content-Type": "audio/wav"})
    expect((status, json.loads(answer)["codes"]), (200, codes.tolist()), "codes of the file")
    status, sound = client.call("POST", "/v1/decode", answer, **{"Content-Type": "application/json"})
    expect((status, sound[:4]), (200, b"RIFF"), "decoded file")
    facts = json.loads(client.call("GET", "/v1/info")[1])
    return {"version": facts["version"], "frames": codes.shape[1], "levels": codes.shape[0]} | {
        name: facts["model"][name] for name in ("name", "weight_class", "numerics", "isa")
    }


if __name__ == "__main__":
    key = os.environ["MIMI_API_KEYS"].split(",")[0] if sys.argv[2] == "key" else None
    print(json.dumps(check_service(int(sys.argv[1]), key, sys.stdin.buffer.read())))
