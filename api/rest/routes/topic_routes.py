"""Routes of topics: configuration, and counts."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Unpack

from fastapi import Depends
from msgspec.structs import replace

from api.native.dependencies import NamePart, StorageDep, TopicPath, may
from api.native.examples import AT, CREATED, LATER, Example
from api.rest.definition_router import definition_router
from api.rest.noun import Noun, Permissions, Schemas, Verbs, verbs_of
from api.rest.schemas.route import (
    RouteConfig,
    RouteOut,
    RoutePage,
    RoutePatch,
    RouteStats,
    RouteStored,
)
from storage.bootstrap import Storage
from storage.domain.access.permissions import Action, Principal
from storage.domain.definitions import PutOptions
from storage.domain.names import RouteName
from storage.domain.topics.route import RouteSpec, TopicRoute
from storage.topics.routes import PutRoute

SEE = Depends(may(Action.TOPIC_LIST))
SUBSCRIBE = Depends(may(Action.TOPIC_SUBSCRIBE))


async def route_from_path(topic: TopicPath, route: NamePart) -> RouteName:
    """Return the route that the path names. Raises ValidationFailed."""
    return RouteName(topic, route)


RoutePath = Annotated[RouteName, Depends(route_from_path)]


_WRITES = {
    "queue": Action.QUEUE_SEND,
    "stream": Action.STREAM_PUT,
    "topic": Action.TOPIC_PUBLISH,
}


def _authorise(
    storage: Storage, principal: Principal, before: RouteSpec | None, after: RouteSpec
) -> None:
    """Require permission to write to a new target or dead-letter queue. Raises Forbidden.

    Of a spread, to every member.
    """
    target, dead_letter_queue = after.target, after.dead_letter_queue
    if before is None or before.target != target:
        for named in target.named:
            name = f"{principal.namespace}/{named.name}"
            storage.authorizer.authorise(principal, _WRITES[named.kind], name)
    if dead_letter_queue and (before is None or before.dead_letter_queue != dead_letter_queue):
        name = f"{principal.namespace}/{dead_letter_queue}"
        storage.authorizer.authorise(principal, Action.QUEUE_SEND, name)


class _RouteVerbs:
    """Engine of routes for a caller, who needs permission to manage the webhook of a URL."""

    def __init__(self, storage: Storage, principal: Principal) -> None:
        self._storage = storage
        self._principal = principal
        self.get = storage.topic_routes.get
        self.delete = storage.topic_routes.delete
        self.list = storage.topic_routes.list

    async def put(
        self, name: RouteName, spec: RouteSpec, **options: Unpack[PutOptions]
    ) -> PutRoute:
        self._authorise_url(name, None, spec)
        return await self._storage.topic_routes.put(name, spec, **options)

    async def change(
        self, name: RouteName, change: Callable[[RouteSpec], RouteSpec], *, if_match: int | None
    ) -> TopicRoute:
        def authorised(before: RouteSpec) -> RouteSpec:
            after = change(before)
            self._authorise_url(name, before, after)
            return after

        routes = self._storage.topic_routes
        return await self._in_force(await routes.change(name, authorised, if_match=if_match))

    async def pause(self, name: RouteName, *, paused: bool) -> TopicRoute:
        return await self._in_force(await self._storage.topic_routes.pause(name, paused=paused))

    async def _in_force(self, route: TopicRoute) -> TopicRoute:
        await self._storage.topic_routes.wait_until_in_force(route)
        return route

    def _authorise_url(self, name: RouteName, before: RouteSpec | None, after: RouteSpec) -> None:
        target = after.target
        if before is not None and target.headers is None:  # they stay as they are
            target = replace(target, headers=before.target.headers)
        if target.url is not None and (before is None or before.target != target):
            webhook = str(name.webhook)
            self._storage.authorizer.authorise(self._principal, Action.WEBHOOK_MANAGE, webhook)


def _verbs(storage: Storage, principal: Principal) -> Verbs:
    engine = _RouteVerbs(storage, principal)
    return verbs_of(engine, list=engine.list)


async def _put_fields(storage: Storage, put: PutRoute, dry_run: bool) -> Mapping[str, Any]:
    """Return the secret of a new URL, which is not valid after a dry run."""
    if dry_run:
        return {"secret": None, "in_force": False}
    secret = None if put.secret is None else put.secret.value
    in_force = await storage.topic_routes.wait_until_in_force(put.definition)
    return {"secret": secret, "in_force": in_force}


ROUTES = Noun(
    name="route",
    path=RoutePath,
    path_prefix="/v1/topics/{topic}",
    parent=TopicPath,
    tag="topics",
    schemas=Schemas(RouteOut, RouteConfig, RouteStored, RoutePatch, RoutePage),
    own_permissions=Permissions([SEE], [SUBSCRIBE]),
    verbs=_verbs,
    authorise=_authorise,
    put_fields=_put_fields,
    text=lambda route: str(route.name.route),
    body_required=True,
    is_etag_complete=True,
    descriptions={
        "put": """Create a route, or replace its configuration.

            The topic `stream:clicks` stands for the stream `clicks`: its routes take the records that are appended to the stream.
            The topic `queue:orders` takes the messages of the queue `orders`, and is created with its first route.

            It takes every message that matches and is accepted after this call was answered, and none that was accepted before
            the call began. If the match, the target, the transform, the format or the key changes, the former revision still
            delivers what was accepted for it. The caller must be allowed to write to the target and the dead-letter queue, which
            need not exist yet. Whether the route is paused does not change.

            With a `spread` as its target, each message goes to one of its members, always to the same one. The former revision of a
            spread that is changed delivers to its own members.

            With a URL as its target, a queue and a webhook are created and changed with the route. When it is new, the response
            contains the signing secret. Another URL, or other settings of it, apply to all messages that are not delivered yet,
            without a new revision. The caller must be allowed to manage the webhook, by its name.

            With `If-None-Match: *`, an existing route is not changed: the response is 412, with the route (`current`) and the
            requested fields that differ from it (`changes`).
            """,
        "get": "Show a route's configuration.",
        "change": "Change fields of a route's configuration.",
        "pause": """Pause a route.

            Messages that it takes wait in the topic's log, up to its retention. The webhook of a URL is paused too.
            """,
        "resume": "Resume a paused route, and the webhook of a URL. It continues with the messages that waited.",
        "delete": """Delete a route at once. Messages that it has taken and not delivered are dropped.

            The queue and the webhook of a URL are deleted with it.
            """,
        "list": "List the routes of a topic by name.",
    },
)
router = definition_router(ROUTES)


@router.get("/{route}/stats", dependencies=[SEE])
async def get_route_stats(route: RoutePath, storage: StorageDep) -> RouteStats:
    """Show what a route has delivered, dead-lettered and dropped, and how far it is behind."""
    return RouteStats.of(await storage.topic_reports.progress(route))


# Examples of the OpenAPI document

_TARGET = {
    "queue": "billing",
    "stream": None,
    "topic": None,
    "url": None,
}
_ROUTE: dict[str, Any] = {
    "name": "billing",
    "topic": "orders",
    "match": {"subject": "order.*"},
    "target": _TARGET,
    "transform": None,
    "format": "body",
    "key": None,
    "delay_seconds": 0,
    "ttl_seconds": 0,
    "on_failure": "wait",
    "dead_letter_queue": None,
    "mode": "live",
    "start": "latest",
    "start_time": None,
    "paused": False,
    "tags": {},
    "number": 1,
    "cost": "indexed",
    "version": 1,
    "created_at": AT,
    "changed_at": AT,
}

EXAMPLES = {
    "put_route": Example(
        "/v1/topics/orders/routes/billing",
        {"match": {"subject": "order.*"}, "target": {"queue": "billing"}},
        201,
        {**_ROUTE, **CREATED, "secret": None, "in_force": True},
        before=(("PUT", "/v1/queues/billing", {}),),
    ),
    "get_route": Example("/v1/topics/orders/routes/billing", answer=_ROUTE),
    "change_route": Example(
        "/v1/topics/orders/routes/billing",
        {"on_failure": "drop"},
        200,
        {**_ROUTE, "on_failure": "drop", "version": 2, "changed_at": LATER},
    ),
    "list_routes": Example(
        "/v1/topics/orders/routes", answer={"items": [_ROUTE], "next_cursor": None}
    ),
    "pause_route": Example(
        "/v1/topics/orders/routes/billing/pause",
        answer={**_ROUTE, "paused": True, "version": 3, "changed_at": LATER},
    ),
    "resume_route": Example(
        "/v1/topics/orders/routes/billing/pause",
        answer={**_ROUTE, "version": 4, "changed_at": LATER},
    ),
    "get_route_stats": Example(
        "/v1/topics/orders/routes/billing/stats",
        answer={
            "state": "active",
            "delivered": 1,
            "dropped": 0,
            "shadowed": 0,
            "dead_lettered": 0,
            "lag_messages": 0,
            "lag_seconds": 0,
            "last_failure": "",
        },
    ),
    "delete_route": Example("/v1/topics/orders/routes/billing", status=204),
}
