"""What the doors ask about a request for the dashboard before FastAPI sees it.

/ui/login, /ui/static/…   for anyone
anything else under /ui   for whoever the gate knows; others are sent to the login page
?ns=acme                  the namespace that an administrator of all of them looks at, as a page can send no header
"""

from urllib.parse import parse_qs

from fastapi import FastAPI, Request, Response
from starlette.types import Scope

from api.admin.assets import PREFIX
from api.admin.error_pages import LOGIN_PATH, refused, to_login
from api.auth.authenticator import NAMESPACE
from api.types import RequestHeaders
from storage.domain.errors import Unauthenticated

ROOT = "/ui"
_NAMESPACE_PARAMETER = "ns"


def is_page(path: str) -> bool:
    """Whether a path is the dashboard's."""
    return path == ROOT or path.startswith("/ui/")


def is_for_strangers(path: str) -> bool:
    """Whether a path of the dashboard is for anyone: the login page, and what pages are drawn with."""
    return path == LOGIN_PATH or path.startswith(PREFIX)


def in_namespace(headers: RequestHeaders, query_string: bytes) -> RequestHeaders:
    """The headers, with the namespace that the address names where they name none."""
    if NAMESPACE in headers or b"ns=" not in query_string:
        return headers
    named = parse_qs(query_string.decode("latin-1")).get(_NAMESPACE_PARAMETER)
    if not named:
        return headers
    return {**headers, NAMESPACE: named[0].encode("latin-1", "replace")}


def page_instead(app: FastAPI, scope: Scope, error: Exception) -> Response | None:
    """What a browser gets that asked for a page and was not let in; None where no page was asked for."""
    if scope["method"] != "GET" or not is_page(scope["path"]):
        return None
    if isinstance(error, Unauthenticated):
        return to_login(scope["path"], scope["query_string"])
    return refused(Request({**scope, "app": app}), error)
