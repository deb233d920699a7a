"""The list of queues."""

import asyncio
from typing import NamedTuple

from fastapi import APIRouter, Depends, Request, Response

from api.admin.lists import Slice, Start, Words, asked, slice_of, sorted_names
from api.admin.refusing import PageRoute
from api.admin.rendering import render
from api.native.dependencies import PrincipalDep, StorageDep, may
from storage.domain.access import Action
from storage.domain.names import QueueName
from storage.domain.queues import Queue, QueueStats
from storage.lifespan import Storage

router = APIRouter(include_in_schema=False, route_class=PageRoute)

SEE = Depends(may(Action.QUEUE_LIST))


class Row(NamedTuple):
    """A queue as the list shows it."""

    queue: Queue
    stats: QueueStats


@router.get("/ui/queues", dependencies=[SEE])
async def list_queues(
    request: Request,
    storage: StorageDep,
    principal: PrincipalDep,
    q: Words = "",
    sort: Words = "name",
    start: Start = 0,
) -> Response:
    """All queues of the namespace that the caller may see."""
    part, tags = asked(q)
    names = await storage.listings.queue_names(principal.namespace, part, tags)
    seen = [name for name in names if principal.policy.allows(Action.QUEUE_LIST, name)]
    page = slice_of(sorted_names(seen, sort, {}), start)
    rows = await _rows(storage, principal.namespace, page)
    return render(request, "queues.html", live=True, rows=rows, page=page, q=q, sort=sort)


async def _rows(storage: Storage, namespace: str, page: Slice) -> list[Row]:
    queues = await storage.listings.queues(namespace, page.names)
    names = [name for name in page.names if name in queues]
    stats = await asyncio.gather(
        *(storage.queues.stats(QueueName(name, namespace)) for name in names)
    )
    return [Row(queues[name], counted) for name, counted in zip(names, stats, strict=True)]
