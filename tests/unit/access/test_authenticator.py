"""Host and Origin checks of open mode."""

import pytest

from api.auth.authenticator import OpenMode, ProxyTrustMode
from storage.domain.access.permissions import LOCAL_ADMINISTRATOR
from storage.domain.errors import Forbidden


@pytest.mark.parametrize(
    "host",
    [b"localhost", b"localhost:8080", b"127.0.0.1:8080", b"127.9.9.9", b"[::1]:8080", b"[::1]"],
)
async def test_loopback_host_is_admitted(host):
    assert await OpenMode().authenticate({b"host": host}) is LOCAL_ADMINISTRATOR


@pytest.mark.parametrize(
    "host",
    [
        b"evil.example",
        b"evil.example:8080",
        b"localhost.evil.example",
        b"127.0.0.1.evil.example",
        b"127.0.0.1@evil.example",
        b"0.0.0.0",
        b"10.0.0.7",
        b"",
        b"[",
        b"\xff",
    ],
)
async def test_other_host_is_rejected(host):
    with pytest.raises(Forbidden):
        await OpenMode().authenticate({b"host": host})


async def test_client_without_host_header_is_admitted():
    assert await OpenMode().authenticate({}) is LOCAL_ADMINISTRATOR


@pytest.mark.parametrize(
    "origin", [b"null", b"https://evil.example", b"http://localhost.evil.example", b""]
)
async def test_cross_site_origin_is_rejected(origin):
    with pytest.raises(Forbidden):
        await OpenMode().authenticate({b"host": b"localhost", b"origin": origin})


@pytest.mark.parametrize(
    "origin", [b"http://localhost:3000", b"http://127.0.0.1", b"http://[::1]:9"]
)
async def test_loopback_origin_is_admitted(origin):
    assert (
        await OpenMode().authenticate({b"host": b"localhost", b"origin": origin})
        is LOCAL_ADMINISTRATOR
    )


async def test_any_host_is_admitted_in_proxy_trust_mode():
    headers = {b"host": b"queue.example", b"origin": b"https://shop.example"}

    assert await ProxyTrustMode().authenticate(headers) is LOCAL_ADMINISTRATOR
