"""Where a client reaches the service, as its call says."""

from api.types import RequestHeaders

_UNNAMED_HOST = b"localhost"  # only HTTP/1.0 comes without a Host


def base_url_of(headers: RequestHeaders, *, secure: bool = False) -> str:
    """The service's scheme and host as the client wrote them. https is spoken by this process (`secure`), or by a proxy
    before it, which says so in `X-Forwarded-Proto`."""
    host = headers.get(b"host", _UNNAMED_HOST).decode("latin-1")
    secure = secure or headers.get(b"x-forwarded-proto") == b"https"
    return f"{'https' if secure else 'http'}://{host}"
