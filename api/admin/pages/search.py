"""Search of the command palette: pages, and resources by name."""

import asyncio
from typing import NamedTuple

from fastapi import APIRouter, Request, Response

from api.admin.error_pages import PageRoute
from api.admin.lists import Words
from api.admin.rendering import render
from api.native.dependencies import PrincipalDep, StorageDep
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.permissions import Action, Principal

router = APIRouter(include_in_schema=False, route_class=PageRoute)

_OF_EACH_KIND = 8

_PAGES = (
    ("Overview", "/ui", None),
    ("Queues", "/ui/queues", Action.QUEUE_LIST),
    ("Streams", "/ui/streams", Action.STREAM_LIST),
    ("Groups", "/ui/groups", Action.GROUP_LIST),
    ("Replays", "/ui/replays", Action.REPLAY_LIST),
    ("Webhooks", "/ui/webhooks", Action.WEBHOOK_LIST),
    ("Sources", "/ui/sources", Action.SOURCE_LIST),
    ("Sockets", "/ui/sockets", None),
    ("Keys", "/ui/keys", Action.ADMIN_KEYS),
    ("Namespaces", "/ui/namespaces", Action.ADMIN_NAMESPACES),
    ("Audit", "/ui/audit", Action.AUDIT_READ),
    ("System", "/ui/system", Action.METRICS_READ),
)


class SearchHit(NamedTuple):
    """One place to go to."""

    kind: str
    name: str
    path: str


@router.get("/ui/search")
async def search(
    request: Request, storage: StorageDep, principal: PrincipalDep, q: Words = ""
) -> Response:
    """Return a fragment that lists the matches by name, pages first."""
    part = q.strip()
    pages = [
        SearchHit("page", label, path)
        for label, path, action in _PAGES
        if part.lower() in label.lower() and (not action or _may(principal, action))
    ]
    named = await _named(storage, principal, part) if part else []
    return render(request, "found.html", found=[*pages, *named])


def _may(principal: Principal, action: Action) -> bool:
    return principal.policy.allows_any_name(action)


async def _named(storage: Storage, principal: Principal, part: str) -> list[SearchHit]:
    namespace = principal.namespace
    queues, streams, groups = await asyncio.gather(
        storage.search.queue_names(namespace, part),
        storage.search.stream_names(namespace, part),
        storage.groups.list_groups(namespace, prefix=part, limit=limits.PAGE_ITEMS_DEFAULT),
    )
    kinds = (
        ("queue", Action.QUEUE_LIST, queues),
        ("stream", Action.STREAM_LIST, streams),
        ("group", Action.GROUP_LIST, [group.name.name for group in groups]),
    )
    hits = []
    for kind, action, names in kinds:
        seen = [name for name in names if principal.policy.allows(action, name)]
        best = sorted(seen, key=lambda name: (not name.startswith(part), name))
        hits += [SearchHit(kind, name, f"/ui/{kind}s/{name}") for name in best[:_OF_EACH_KIND]]
    return hits
