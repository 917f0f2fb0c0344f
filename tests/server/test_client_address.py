from __future__ import annotations

import pytest
from starlette.requests import HTTPConnection

from codec_core.errors import SettingError
from server.client_address import checked_proxies, client_name, client_of


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::ffff", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::/64"),
        ("", "unknown"),
        ("evil\nname", "unknown"),
        ("x" * 100_000, "unknown"),
    ],
)
def test_clients_are_named(host, name):
    assert client_name(host) == name
    assert client_of(HTTPConnection({"type": "websocket", "client": (host, 1)})) == name


def test_a_connection_without_address_is_one_client():
    assert client_of(HTTPConnection({"type": "http", "client": None})) == "unknown"


def test_proxies_are_addresses_or_networks():
    assert checked_proxies(["10.0.0.0/8", "::1", "192.0.2.1"]) == ["10.0.0.0/8", "::1", "192.0.2.1"]
    for wrong in ("*", "proxy.example", "10.0.0.1/8", "10.0.0.0/33"):
        with pytest.raises(SettingError, match="MIMI_TRUSTED_PROXIES"):
            checked_proxies([wrong])
