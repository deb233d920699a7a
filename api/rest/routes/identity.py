"""Identity of the caller, tickets for WebSockets, and dashboard sessions."""

from typing import Annotated

from fastapi import APIRouter, Body, Depends, Request, Response

from api.auth.cookies import session_token, set_cookie
from api.native.dependencies import PrincipalDep, StorageDep, require_json
from api.native.examples import API_KEY, GRANT, KEY_ID, LATER, RATES, Example, Repeat
from api.native.fields import rfc3339
from api.native.native_route import NativeRoute
from api.rest.conditional_requests import NO_STORE
from api.rest.schemas.key import LoggedInOut, LogIn, TicketOut, WhoamiOut
from storage.domain import limits
from storage.domain.errors import Unauthenticated

router = APIRouter(prefix="/v1", tags=["keys"], route_class=NativeRoute)

JSON_ONLY = Depends(require_json)
_BEARER = "bearer "
_SESSION_SECONDS = limits.SESSION_MS_MAX // limits.SECOND_MS


def is_public(_: str, path: str) -> bool:
    """Return whether a request is a log-in, which brings its own credentials."""
    return path == "/v1/sessions"


@router.get("/whoami")
async def whoami(principal: PrincipalDep) -> WhoamiOut:
    """Return the caller's identity and permissions."""
    return WhoamiOut.from_domain(principal)


@router.post("/tickets", status_code=201)
async def make_ticket(
    storage: StorageDep, principal: PrincipalDep, response: Response
) -> TicketOut:
    """Create a ticket with which a browser can open one WebSocket as the caller.

    The ticket is valid for 30 seconds.
    """
    made = await storage.credentials.make_ticket(principal)
    if made is None:
        raise Unauthenticated("The credential of this call no longer exists.")
    word, expires_at_ms = made
    response.headers["cache-control"] = NO_STORE
    return TicketOut(ticket=word, expires_at=rfc3339(expires_at_ms))


@router.post("/sessions", dependencies=[JSON_ONLY], status_code=201)
async def log_in(
    request: Request,
    storage: StorageDep,
    response: Response,
    login: Annotated[LogIn, Body(default_factory=LogIn)],
) -> LoggedInOut:
    """Log a browser in with an API key.

    The response sets the session cookie. The session ends when the key does, or after one day.
    """
    headers = dict(request.scope["headers"])
    session = await storage.credentials.log_in(login.api_key or _key_from_headers(request))
    if session is None:
        raise Unauthenticated("Invalid or expired API key.")
    if (former := session_token(headers)) is not None:
        await storage.credentials.log_out(former)
    cookie = set_cookie(headers, request.url.scheme, session.token, _SESSION_SECONDS)
    response.headers["set-cookie"] = cookie
    response.headers["cache-control"] = NO_STORE
    return LoggedInOut.from_domain(session)


@router.delete("/sessions", status_code=204)
async def log_out(request: Request, storage: StorageDep, response: Response) -> None:
    """Log a browser out: its session ends in all processes."""
    headers = dict(request.scope["headers"])
    token = session_token(headers)
    if token is not None:
        await storage.credentials.log_out(token)
    response.headers["set-cookie"] = set_cookie(headers, request.url.scheme, "", 0)


def _key_from_headers(request: Request) -> str:
    authorization = request.headers.get("authorization", "")
    if authorization.lower().startswith(_BEARER):
        return authorization[len(_BEARER) :].strip()
    return request.headers.get("x-api-key", "")


# Examples of the OpenAPI document

EXAMPLES = {
    "log_in": Example(
        "/v1/sessions",
        {"api_key": API_KEY},
        201,
        {"name": "shop", "namespace": "default", "expires_at": LATER},
    ),
    "log_out": Example("/v1/sessions", status=204),
    "make_ticket": Example(
        "/v1/tickets",
        status=201,
        answer={
            "ticket": "mst_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGxxxxxx",
            "expires_at": LATER,
        },
        repeat=Repeat.SAFE,  # another one is good as well
    ),
    "whoami": Example(
        "/v1/whoami",
        answer={
            "name": "shop",
            "namespace": "default",
            "all_namespaces": False,
            "credential": KEY_ID,
            "grants": [GRANT],
            "rates": RATES,
            "expires_at": None,
        },
    ),
}
