"""Base URL of the service, derived from the client's request."""

from api.types import RequestHeaders

_UNNAMED_HOST = b"localhost"  # only HTTP/1.0 requests have no Host


def base_url_of(headers: RequestHeaders, *, secure: bool = False) -> str:
    """Return the service's scheme and host as the client wrote them.

    This process terminates https (`secure`), or a proxy before it does and sets `X-Forwarded-Proto`.
    """
    host = headers.get(b"host", _UNNAMED_HOST).decode("latin-1")
    secure = secure or headers.get(b"x-forwarded-proto") == b"https"
    return f"{'https' if secure else 'http'}://{host}"
