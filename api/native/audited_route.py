"""Control-plane routes whose calls are audited.

Those are the routes that change something and require permission to administer it.
"""

from functools import partial
from typing import cast

import msgspec
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from api.auth.audit import Auditing, AuditSubject, Caller, address_of, failure_outcome
from api.errors import HttpErrorCode
from api.native.dependencies import REQUEST_ID_KEY, Right, named_in, principal_of, right_of
from api.native.native_route import Handler, NativeRoute
from storage.domain.access.audit import ApiProtocol, Snapshot, is_administrative, outcome
from storage.domain.errors import ErrorCode

_READING = frozenset({"GET", "HEAD"})
_LOGGED_MEMBERS = (
    "id",
    "name",
    "kind",
    "state",
    "role",
    "primary",
    "source",
    "target",
    "namespace",
    "expires_at",
    "purged",
    "moved",
    "deleted",
)
"""Members of an answer that are logged if they are short values; nothing else of it is logged."""
_LOGGED_CHARACTERS_MAX = 256
_RIGHTS = ("all_namespaces", "everywhere", "roles", "grants", "rates")
"""Permissions of a new credential."""


class AuditedRoute(NativeRoute):
    """Route class of audited routers.

    Read routes and those of the data plane behave as usual.
    """

    @property
    def audited(self) -> Right | None:
        """The permission that its calls require, if they are audited."""
        if set(self.methods or ()) <= _READING:
            return None
        rights = (right_of(depends) for depends in self.dependencies)
        return next((right for right in rights if right and is_administrative(right.action)), None)

    def get_route_handler(self) -> Handler:
        """Return FastAPI's handler, wrapped in an audit if the route is audited."""
        handle: Handler = super().get_route_handler()
        right = self.audited
        return handle if right is None else partial(_audited, handle, self.name, right)


async def _audited(handle: Handler, operation: str, right: Right, request: Request) -> Response:
    auditing = cast(Auditing, request.app.state.auditing)
    caller = Caller(
        principal_of(request),
        ApiProtocol.REST,
        address_of(request.scope.get("client")),
        request.scope.get(REQUEST_ID_KEY, ""),
    )
    about = _about(operation, right, request)
    return await auditing.run(
        caller,
        about,
        partial(handle, request),
        describe_result=_response_values,
        describe_error=_outcome_of,
    )


def _outcome_of(error: Exception) -> str:
    if isinstance(error, RequestValidationError):
        return outcome("refused", ErrorCode.VALIDATION_FAILED.value)
    if isinstance(error, HTTPException):
        return outcome("refused", HttpErrorCode.BAD_REQUEST.value)
    return failure_outcome(error)


def _about(operation: str, right: Right, request: Request) -> AuditSubject:
    """Return the subject of a path: `/v1/queues/orders/messages/m1` concerns queue `orders`."""
    resource = request.url.path.removeprefix("/v1/")
    everything = request.path_params.get("namespace", "*")
    name = everything if right.everything else named_in(request) or ""
    noun, definition = _definition_in(resource)
    return AuditSubject(operation, right.action, resource, name, noun, definition)


def _definition_in(resource: str) -> tuple[str, str]:
    """Return the noun and name of the definition that a path concerns, as snapshots have them."""
    match resource.split("/"):
        case ["keys", _, _, *_]:  # the new key of a rotation is recorded from the answer
            return "keys", ""
        case ["topics", topic, "routes", route, *_]:
            return "routes", f"{topic}/{route}"
        case [noun, name, *_]:
            return noun, name
        case _:
            return resource, ""


def _response_values(response: Response) -> Snapshot | None:
    """Return the short values of an answer that identify its object."""
    try:
        body = msgspec.json.decode(response.body)
    except msgspec.DecodeError:
        return None
    if not isinstance(body, dict):
        return None
    values = {name: body[name] for name in _LOGGED_MEMBERS if _is_short(body.get(name))}
    dry_run = {"dry_run": True} if body.get("dry_run") is True else {}
    return values | dry_run | {name: body[name] for name in _RIGHTS if name in body} or None


def _is_short(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= _LOGGED_CHARACTERS_MAX
    return isinstance(value, int) and not isinstance(value, bool)
