"""The cookie of a session: whose it is, and where it is good."""

import pytest

from api.auth.cookies import session_word, set_cookie

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
def test_only_plain_http_on_this_machine_has_a_cookie_without_tls(headers, scheme, name, secure):
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
def test_a_cookie_that_another_host_could_plant_counts_on_this_machine_only(headers, cookie, word):
    assert session_word({**headers, b"cookie": cookie}) == word


def test_a_call_without_cookies_has_no_session():
    assert session_word(LOCAL) is None
