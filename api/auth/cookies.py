"""Session cookies: host-only, invisible to scripts, not sent with other sites' forms.

A browser accepts `__Host-` cookies over TLS alone. Plain http on this machine has a cookie of another name, which is
valid there only: elsewhere a page of a sibling host could plant it.
"""

from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from api.config.settings import LOOPBACK_HOSTS
from api.types import RequestHeaders

SECURE_COOKIE = "__Host-ms_session"
LOCAL_COOKIE = "ms_session"


def session_token(headers: RequestHeaders) -> str | None:
    """Return the session token of a request, if any."""
    header = headers.get(b"cookie")
    if header is None:
        return None
    try:
        cookies = SimpleCookie(header.decode("latin-1"))
    except CookieError:
        return None
    names = (SECURE_COOKIE, LOCAL_COOKIE) if _is_local(headers) else (SECURE_COOKIE,)
    return next((cookies[name].value for name in names if name in cookies), None)


def set_cookie(headers: RequestHeaders, scheme: str, token: str, seconds: int) -> str:
    """Return the cookie that stores a session in the browser for `seconds`; 0 deletes it."""
    local = scheme == "http" and _is_local(headers)
    name, secure = (LOCAL_COOKIE, "") if local else (SECURE_COOKIE, "; Secure")
    return f"{name}={token}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}"


def _is_local(headers: RequestHeaders) -> bool:
    host = headers.get(b"host", b"").decode("latin-1")
    try:
        return urlsplit(f"//{host}").hostname in LOOPBACK_HOSTS
    except ValueError:
        return False
