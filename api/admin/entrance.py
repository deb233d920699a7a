"""What the doors ask about a request for the dashboard before FastAPI sees it.

/ui/login, /ui/static/…   for anyone
anything else under /ui   for whoever the gate knows; others are sent to the login page
?ns=acme                  the namespace that an administrator of all of them looks at, as a page can send no header
"""

from urllib.parse import parse_qs

from fastapi import Response
from starlette.types import Scope

from api.admin.assets import PREFIX
from api.admin.refusing import LOGIN_PATH, to_login
from api.auth.gate import NAMESPACE
from api.payloads import RequestHeaders

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


def sent_to_login(scope: Scope) -> Response | None:
    """The answer to a stranger who asks for a page; None where there is no page to come back to."""
    if scope["method"] != "GET" or not is_page(scope["path"]):
        return None
    return to_login(scope["path"], scope["query_string"])
