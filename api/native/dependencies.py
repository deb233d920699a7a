"""Dependencies of control-plane routes: storage, caller, names from paths, pages."""

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, cast

from fastapi import Depends, Path, Query, Request, params

from api.config.settings import Settings
from api.http.codecs import UNNAMED, media_type, unsupported
from api.nouns import NOUNS
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.permissions import Action, Principal
from storage.domain.errors import Forbidden
from storage.domain.names import (
    ENDPOINT_PATTERN,
    STREAM_PATTERN,
    TOPIC_PATTERN,
    GroupName,
    MirrorName,
    QueueName,
    ScopedName,
    SourceName,
    StreamName,
    TopicName,
    ViewName,
    WebhookName,
)

PRINCIPAL_KEY = "millstream.principal"
"""Key of the caller in the ASGI scope, set by the gateway."""

REQUEST_ID_KEY = "millstream.request_id"
"""Key of the request id in the ASGI scope."""

NamePart = Annotated[
    str,
    Path(
        description="1 to 80 of A-Z a-z 0-9 _ . -",
        json_schema_extra={"pattern": "^[A-Za-z0-9_.-]{1,80}$"},
    ),
]
StreamPart = Annotated[
    str,
    Path(
        description="1 to 80 of A-Z a-z 0-9 _ . -; `topic:orders` is the stream of the topic `orders`",
        json_schema_extra={"pattern": STREAM_PATTERN},
    ),
]
TopicPart = Annotated[
    str,
    Path(
        description="1 to 80 of A-Z a-z 0-9 _ . -; `stream:clicks` stands for the stream `clicks`, whose records its routes take; "
        "`queue:orders` takes the messages of the queue `orders`",
        json_schema_extra={"pattern": TOPIC_PATTERN},
    ),
]
EndpointPart = Annotated[
    str,
    Path(
        description="1 to 80 of A-Z a-z 0-9 _ . -; `route:orders.crm` belongs to the route `crm` of the topic `orders`",
        json_schema_extra={"pattern": ENDPOINT_PATTERN},
    ),
]
Limit = Annotated[int, Query(ge=1, le=limits.PAGE_ITEMS_MAX)]
Prefix = Annotated[str, Query(max_length=limits.NAME_CHARACTERS_MAX)]
Cursor = Annotated[str, Query(description="`next_cursor` of the previous page.")]


def storage_of(request: Request) -> Storage:
    """Return the open storage."""
    return cast(Storage, request.app.state.storage)


def principal_of(request: Request) -> Principal:
    """Return the caller."""
    return cast(Principal, request.scope[PRINCIPAL_KEY])


def settings_of(request: Request) -> Settings:
    """Return the settings of this process."""
    return cast(Settings, request.app.state.settings)


SettingsDep = Annotated[Settings, Depends(settings_of)]
StorageDep = Annotated[Storage, Depends(storage_of)]
PrincipalDep = Annotated[Principal, Depends(principal_of)]


def namespace_of(principal: PrincipalDep) -> str:
    """Return the namespace that the caller acts in."""
    return principal.namespace


CallersNamespace = Annotated[str, Depends(namespace_of)]


def name_from_path(noun: str, kind: type[ScopedName], part: Any = NamePart) -> params.Depends:
    """Return the dependency on the name of a noun in a path. It raises ValidationFailed."""

    async def from_path(name: Any, principal: PrincipalDep) -> ScopedName:
        return kind(name, principal.namespace)

    from_path.__annotations__["name"] = Annotated[part, Path(alias=noun)]
    return cast(params.Depends, Depends(from_path))


QueuePath = Annotated[QueueName, name_from_path("queue", QueueName, EndpointPart)]
StreamPath = Annotated[StreamName, name_from_path("stream", StreamName, StreamPart)]
TopicPath = Annotated[TopicName, name_from_path("topic", TopicName, TopicPart)]
GroupPath = Annotated[GroupName, name_from_path("group", GroupName)]
WebhookPath = Annotated[WebhookName, name_from_path("webhook", WebhookName, EndpointPart)]
MirrorPath = Annotated[MirrorName, name_from_path("mirror", MirrorName)]
ViewPath = Annotated[ViewName, name_from_path("view", ViewName)]
SourcePath = Annotated[SourceName, name_from_path("source", SourceName)]
ShardPath = Annotated[int, Path(description="Number of the shard.")]
"""Names that several modules take; a noun of one module declares its own there."""


_RIGHT = "right"


class Right(NamedTuple):
    """The permission that an authorise step requires.

    `everything`: on every name, because the path names none.
    """

    action: Action
    everything: bool = False


_GRANTED_BY_NAME = [noun.name for noun in NOUNS if noun.is_granted_by_name]


def may(action: Action, parameter: str = "") -> Callable[..., None]:
    """Return the authorise step of a route. Raises Forbidden.

    It checks the resource that the path names, or else whether the caller may do this on any resource. `parameter`: the one
    of the path that names it, if it is not that of a noun.
    """

    def authorise(request: Request, storage: StorageDep, principal: PrincipalDep) -> None:
        named = request.path_params[parameter] if parameter else named_in(request)
        if named is None:
            storage.authorizer.authorise_list(principal, action)
        else:
            storage.authorizer.authorise(principal, action, f"{principal.namespace}/{named}")

    setattr(authorise, _RIGHT, Right(action))
    return authorise


def may_all(action: Action) -> Callable[..., None]:
    """Return the authorise step of a route that concerns all names. Raises Forbidden.

    It requires a grant for every name.
    """

    def authorise(storage: StorageDep, principal: PrincipalDep) -> None:
        storage.authorizer.authorise(principal, action, f"{principal.namespace}/*")

    setattr(authorise, _RIGHT, Right(action, everything=True))
    return authorise


def acts_everywhere(principal: PrincipalDep) -> None:
    """Raise Forbidden unless the caller administers all namespaces."""
    if not principal.all_namespaces:
        raise Forbidden(f"'{principal.name}' is not an administrator of all namespaces.")


def named_in(request: Request) -> str | None:
    """Return the resource name in the path that policies apply to, if any."""
    parameters = (request.path_params.get(noun) for noun in _GRANTED_BY_NAME)
    return next((name for name in parameters if name), None)


def right_of(depends: params.Depends) -> Right | None:
    """Return the permission that a route's dependency requires, if it is an authorise step."""
    return cast(Right | None, getattr(depends.dependency, _RIGHT, None))


def require_json(request: Request) -> None:
    """Require a JSON or JSON Merge Patch body. Raises HttpError (415)."""
    kind = media_type(dict(request.scope["headers"]))
    if kind == UNNAMED and not _has_body(request):
        return
    if kind not in ("application/json", "application/merge-patch+json"):
        raise unsupported(kind)


def _has_body(request: Request) -> bool:
    length = request.headers.get("content-length", "0")
    return length != "0" or "transfer-encoding" in request.headers
