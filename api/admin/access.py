"""Access rules for requests to the dashboard, applied before FastAPI sees them.

/ui/login, /ui/static/…   for anyone
anything else under /ui   for authenticated callers; others are redirected to the login page
?ns=acme                  the namespace that an administrator of all namespaces views, as a page cannot send a header
"""

from urllib.parse import parse_qs

from fastapi import FastAPI, Request, Response
from starlette.types import Scope

from api.admin.assets import PREFIX
from api.admin.error_pages import LOGIN_PATH, error_page, to_login
from api.auth.authenticator import NAMESPACE
from api.types import RequestHeaders
from storage.domain.errors import Unauthenticated

ROOT = "/ui"
_NAMESPACE_PARAMETER = "ns"


def is_page(path: str) -> bool:
    """Return whether a path belongs to the dashboard."""
    return path == ROOT or path.startswith("/ui/")


def is_public(path: str) -> bool:
    """Return whether a path is public: the login page, static assets, a redirect."""
    return path in (LOGIN_PATH, "/docs") or path.startswith(PREFIX)


def in_namespace(headers: RequestHeaders, query_string: bytes) -> RequestHeaders:
    """Return the headers, with the namespace of the URL if they contain none."""
    if NAMESPACE in headers or b"ns=" not in query_string:
        return headers
    named = parse_qs(query_string.decode("latin-1")).get(_NAMESPACE_PARAMETER)
    if not named:
        return headers
    return {**headers, NAMESPACE: named[0].encode("latin-1", "replace")}


def page_instead(app: FastAPI, scope: Scope, error: Exception) -> Response | None:
    """Return the page for a browser that was denied access; None if it did not request a page."""
    if scope["method"] != "GET" or not is_page(scope["path"]):
        return None
    if isinstance(error, Unauthenticated):
        return to_login(scope["path"], scope["query_string"])
    return error_page(Request({**scope, "app": app}), error)
