from __future__ import annotations

import pytest
from starlette.requests import HTTPConnection

from server.errors import ForbiddenOriginError
from server.origin import check_origin
from server.settings import Settings


def connection(origin: str, host: str) -> HTTPConnection:
    headers = [(b"origin", origin.encode()), (b"host", host.encode())]
    return HTTPConnection({"type": "http", "headers": headers})


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "[::1]:8000", "192.168.1.7", "localhost:8000", "codec.example:8000"])
def test_addresses_and_the_configured_host_are_the_services_own(host):
    check_origin(connection(f"http://{host}", host), Settings(host="codec.example"))


def test_another_name_in_host_is_no_proof_without_keys():
    rebound = connection("http://evil.example:8000", "evil.example:8000")
    with pytest.raises(ForbiddenOriginError):
        check_origin(rebound, Settings())
    check_origin(rebound, Settings(api_keys="key"))
    check_origin(rebound, Settings(allowed_origins="http://evil.example:8000"))


@pytest.mark.parametrize("origin", ["http://[", "null", "", "http://", "http://other:8000"])
def test_what_is_no_origin_or_another_one_is_refused(origin):
    with pytest.raises(ForbiddenOriginError):
        check_origin(connection(origin, "localhost:8000"), Settings())
