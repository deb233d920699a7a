"""Pages of a queue: overview, settings and code snippets.

The contents are in `queue_contents`.
"""

import asyncio

from fastapi import APIRouter, Depends, Request, Response

from api.admin.error_pages import PageRoute
from api.admin.pages._shared import queue_page
from api.admin.queue_snippets import queue_snippets
from api.admin.rendering import service_access
from api.native.dependencies import PrincipalDep, QueuePath, StorageDep, may
from storage.domain.access.permissions import Action
from storage.domain.queues.queue import QueueType

router = APIRouter(prefix="/ui/queues/{queue}", include_in_schema=False, route_class=PageRoute)

SEE = Depends(may(Action.QUEUE_LIST))


@router.get("", dependencies=[SEE])
async def show_queue(request: Request, queue: QueuePath, storage: StorageDep) -> Response:
    """Show the overview of a queue."""
    stored, stats, moves = await asyncio.gather(
        storage.catalog.fresh_queue(queue),
        storage.queues.stats(queue),
        storage.moves.list(queue, 4),
    )
    return queue_page(
        request,
        "overview",
        "overview",
        stored,
        stats,
        live=True,
        moves=moves,
    )


@router.get("/settings", dependencies=[SEE])
async def show_settings(request: Request, queue: QueuePath, storage: StorageDep) -> Response:
    """Show the settings of a queue."""
    stored, stats = await asyncio.gather(
        storage.catalog.fresh_queue(queue), storage.queues.stats(queue)
    )
    return queue_page(
        request,
        "settings",
        "settings",
        stored,
        stats,
        live=False,
        spec=stored.spec,
    )


@router.get("/code", dependencies=[SEE])
async def show_code(
    request: Request, queue: QueuePath, storage: StorageDep, principal: PrincipalDep
) -> Response:
    """Show programs that use a queue."""
    stored, stats = await asyncio.gather(
        storage.catalog.fresh_queue(queue), storage.queues.stats(queue)
    )
    fifo = stored.spec.type is QueueType.FIFO
    return queue_page(
        request,
        "code",
        "code",
        stored,
        stats,
        live=False,
        snippets=queue_snippets(service_access(request), queue.name, fifo=fifo),
    )
