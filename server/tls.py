"""TLS by the service itself, where no proxy does it."""

from __future__ import annotations

import ssl
from pathlib import Path

from codec_core.errors import SettingError
from server.settings import Settings


def tls_context(settings: Settings) -> ssl.SSLContext | None:
    """Load certificate and key; ``None`` where the service speaks plain HTTP.

    TLS 1.2 or newer, HTTP/1.1 only, no certificates asked of clients.

    Raises:
        SettingError: one is given without the other, cannot be read, or does not belong to it.

    """
    cert, key = settings.tls_cert, settings.tls_key
    if not cert and not key:
        return None
    for name, path, other in (("tls_cert", cert, key), ("tls_key", key, cert)):
        if not path:
            raise SettingError(name, found="nothing", expected=f"a PEM file, to go with {other}")
        _check_readable(name, path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        # Without a password to give, a key that wants one is refused instead of asked for at the terminal.
        context.load_cert_chain(cert, key, password="")
    except (ssl.SSLError, OSError) as cause:
        reason = getattr(cause, "reason", None) or str(cause)
        found = f"{cert} and {key}: {reason.lower().replace('_', ' ')}"
        raise SettingError("tls_cert and tls_key", found=found, expected="a PEM certificate and its unencrypted key") from cause
    return context


def _check_readable(name: str, path: str) -> None:
    try:
        with Path(path).open("rb"):
            pass
    except OSError as cause:
        raise SettingError(name, found=f"{path}: {cause.strerror}", expected="a PEM file that can be read") from cause
