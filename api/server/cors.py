"""CORS for the origins in the settings: off unless there are some, and never with cookies."""

from collections.abc import Sequence

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_EXPOSED_HEADERS = (
    "etag",
    "location",
    "retry-after",
    "ratelimit",
    "ratelimit-policy",
    "millstream-acknowledge",
    "millstream-durability",
    "x-request-id",
)
_MAX_AGE_S = 600


def with_cors(app: ASGIApp, origins: Sequence[str]) -> ASGIApp:
    """Wrap the application to answer CORS requests of these origins."""
    return CORSMiddleware(
        app,
        allow_origins=origins,
        allow_methods=_METHODS,
        allow_headers=("*",),
        allow_credentials=False,
        expose_headers=_EXPOSED_HEADERS,
        max_age=_MAX_AGE_S,
    )
