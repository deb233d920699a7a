"""Where a client reaches the service."""

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
def test_it_has_the_scheme_that_the_client_speaks(secure, forwarded, scheme):
    headers = {b"host": b"queues.example.org", b"x-forwarded-proto": forwarded}

    assert base_url_of(headers, secure=secure) == f"{scheme}://queues.example.org"


def test_a_call_that_names_no_host_came_from_here():
    assert base_url_of({}) == "http://localhost"
