"""TLS by the service itself, with a certificate made here."""

from __future__ import annotations

import json
import ssl

import httpx
import numpy as np
import pytest
import websockets

from codec_core.clip import encode_clip
from codec_core.errors import SettingError
from server.settings import Settings
from server.tls import tls_context
from server.wire_messages import unpack_frame
from tests.e2e.certificate import make_certificate


async def test_https_and_wss(start_service, tmp_path, speech, tiny_model):
    cert, key = make_certificate(tmp_path, "mimi")
    service = start_service("--tls-cert", cert, "--tls-key", key)
    assert service.url.startswith("https://127.0.0.1:")
    trust = ssl.create_default_context(cafile=cert)
    async with httpx.AsyncClient(base_url=service.url, verify=trust) as http:
        assert (await http.get("/readyz")).json()["ready"]
    async with websockets.connect(f"wss{service.url[5:]}/v1/stream?levels=4", ssl=trust, origin=service.url) as connection:
        assert json.loads(await connection.recv())["type"] == "ready"
        await connection.send(speech[:3840].tobytes())
        payloads = [unpack_frame(await connection.recv())[1] for _ in range(2)]
    codes = np.array([np.frombuffer(payload, "<u2") for payload in payloads]).T
    assert np.array_equal(codes, encode_clip(tiny_model, speech[:3840], 4))
    async with httpx.AsyncClient() as stranger:
        with pytest.raises(httpx.ConnectError, match=r"(?i)certificate"):
            await stranger.get(f"{service.url}/healthz")
        with pytest.raises(httpx.RemoteProtocolError):
            await stranger.get(f"http{service.url[5:]}/healthz")
    assert "Traceback" not in service.log


def test_tls_is_off_without_a_certificate():
    assert tls_context(Settings()) is None


def test_what_does_not_go_together_is_refused(tmp_path):
    cert, key = make_certificate(tmp_path, "one")
    _, other_key = make_certificate(tmp_path, "other")
    _, locked = make_certificate(tmp_path, "locked", b"a password")
    assert tls_context(Settings(tls_cert=cert, tls_key=key)).minimum_version >= ssl.TLSVersion.TLSv1_2
    for settings, subject in (
        (Settings(tls_cert=cert), "tls_key: found nothing"),
        (Settings(tls_key=key), "tls_cert: found nothing"),
        (Settings(tls_cert=str(tmp_path / "none"), tls_key=key), "tls_cert: found .*No such file"),
        (Settings(tls_cert=cert, tls_key=str(tmp_path)), "tls_key: found .*Is a directory"),
        (Settings(tls_cert=cert, tls_key=other_key), "tls_cert and tls_key: found .*key values mismatch"),
        (Settings(tls_cert=cert, tls_key=locked), "tls_cert and tls_key: found "),
        (Settings(tls_cert=key, tls_key=key), "tls_cert and tls_key: found "),
    ):
        with pytest.raises(SettingError, match=subject):
            tls_context(settings)
