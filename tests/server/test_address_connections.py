from __future__ import annotations

import pytest

from server.address_connections import AddressConnections
from server.errors import AddressConnectionsError


def connections(most: int = 2) -> AddressConnections:
    return AddressConnections(most, ["10.0.0.0/8", "2001:db8:ffff::1"], retry_after_ms=50)


def test_each_address_has_its_share():
    counted = connections()
    for _ in range(2):
        counted.check(counted.opened("192.0.2.1"))
    third = counted.opened("192.0.2.1")
    said = r"192\.0\.2\.1: found 2 of 2 connections.*MIMI_TRUSTED_PROXIES"
    with pytest.raises(AddressConnectionsError, match=said) as refusal:
        counted.check(third)
    assert refusal.value.retry_after_ms == 50
    counted.check(counted.opened("192.0.2.2"))
    counted.closed(third)
    counted.closed(third)
    counted.check(counted.opened("192.0.2.1"))


@pytest.mark.parametrize("hosts", [("2001:db8::1", "2001:db8::2"), ("192.0.2.1", "::ffff:192.0.2.1"), ("", "no address")])
def test_what_is_one_client_is_counted_together(hosts):
    counted = connections(1)
    counted.check(counted.opened(hosts[0]))
    with pytest.raises(AddressConnectionsError):
        counted.check(counted.opened(hosts[1]))


@pytest.mark.parametrize("host", ["10.1.2.3", "::ffff:10.1.2.3", "2001:db8:ffff::1"])
def test_a_trusted_proxy_has_as_many_as_it_likes(host):
    counted = connections(1)
    for client in [counted.opened(host) for _ in range(9)]:
        counted.check(client)
        counted.closed(client)
