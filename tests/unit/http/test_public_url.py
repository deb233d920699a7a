"""The public base URL of the service."""

import pytest

from api.http.public_url import base_url_of


@pytest.mark.parametrize(
    ("secure", "forwarded", "scheme"),
    [
        (False, b"", "http"),
        (True, b"", "https"),
        (False, b"https", "https"),
        (True, b"http", "https"),
    ],
)
def test_base_url_has_the_scheme_of_the_client(secure, forwarded, scheme):
    headers = {b"host": b"queues.example.org", b"x-forwarded-proto": forwarded}

    assert base_url_of(headers, secure=secure) == f"{scheme}://queues.example.org"


def test_base_url_without_host_is_localhost():
    assert base_url_of({}) == "http://localhost"
