"""TLS by the service itself, with a certificate made here."""

from __future__ import annotations

import datetime
import ipaddress
import json
import ssl

import httpx
import numpy as np
import pytest
import websockets
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from codec_core.clip import encode_clip
from codec_core.errors import SettingError
from server.settings import Settings
from server.tls import tls_context
from server.wire_messages import unpack_frame


def make_certificate(folder, name: str, password: bytes | None = None) -> tuple[str, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    coding = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    paths = folder / f"{name}.crt", folder / f"{name}.key"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, coding))
    return str(paths[0]), str(paths[1])


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
