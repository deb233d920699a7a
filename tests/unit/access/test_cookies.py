"""The session cookie: its name, its attributes, and which cookie counts."""

import pytest

from api.auth.cookies import session_token, set_cookie

LOCAL = {b"host": b"127.0.0.1:8080"}
ELSEWHERE = {b"host": b"mill.example.com"}


@pytest.mark.parametrize(
    ("headers", "scheme", "name", "secure"),
    [
        (LOCAL, "http", "ms_session", False),
        (LOCAL, "https", "__Host-ms_session", True),
        (ELSEWHERE, "http", "__Host-ms_session", True),
        (ELSEWHERE, "https", "__Host-ms_session", True),
        ({}, "http", "__Host-ms_session", True),
    ],
)
def test_cookie_is_insecure_only_over_http_on_loopback(headers, scheme, name, secure):
    said = set_cookie(headers, scheme, "mss_x", 60)

    assert said.startswith(f"{name}=mss_x; Path=/; Max-Age=60; HttpOnly; SameSite=Lax")
    assert said.endswith("; Secure") == secure
    assert "Domain" not in said


@pytest.mark.parametrize(
    ("headers", "cookie", "word"),
    [
        (LOCAL, b"ms_session=a", "a"),
        (LOCAL, b"x=1; ms_session=a; __Host-ms_session=b", "b"),
        (ELSEWHERE, b"__Host-ms_session=b", "b"),
        (ELSEWHERE, b"ms_session=planted", None),
        (ELSEWHERE, b"", None),
        (ELSEWHERE, b"\xff\xfe;;==", None),
        ({b"host": b"[x"}, b"ms_session=a", None),
    ],
)
def test_unprefixed_cookie_counts_only_on_loopback(headers, cookie, word):
    assert session_token({**headers, b"cookie": cookie}) == word


def test_request_without_cookies_has_no_session():
    assert session_token(LOCAL) is None
