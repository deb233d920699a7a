"""Pages of a queue: overview, settings and code snippets.

The contents are in `queue_contents`.
"""

import asyncio
from typing import Any

from fastapi import APIRouter, Depends, Request, Response

from api.admin.error_pages import PageRoute
from api.admin.queue_snippets import queue_snippets
from api.admin.rendering import Tab, render, service_access
from api.native.dependencies import PrincipalDep, QueuePath, StorageDep, may
from storage.domain.access.permissions import Action
from storage.domain.queues.queue import Queue, QueueStats, QueueType

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


def queue_page(
    request: Request,
    template: str,
    here: str,
    queue: Queue,
    stats: QueueStats,
    *,
    live: bool,
    **values: Any,
) -> Response:
    """Render a page of the queue. `here`: the tab that it belongs to."""
    return render(
        request,
        f"queue/{template}.html",
        live=live,
        queue=queue,
        name=queue.name.name,
        stats=stats,
        tabs=_tabs(queue, stats),
        here=here,
        **values,
    )


def _tabs(queue: Queue, stats: QueueStats) -> list[Tab]:
    path = f"/ui/queues/{queue.name.name}"
    messages = stats.ready + stats.delayed + stats.in_flight + stats.parked
    tabs = [
        Tab("overview", "Overview", path),
        Tab("messages", "Messages", f"{path}/messages", messages),
        Tab("dead", "Dead letters", f"{path}/dead-letters", stats.dead_lettered),
    ]
    if queue.spec.type is QueueType.FIFO or stats.parked:
        tabs.append(Tab("groups", "Parked groups", f"{path}/groups"))
    return [
        *tabs,
        Tab("settings", "Settings", f"{path}/settings"),
        Tab("code", "Code", f"{path}/code"),
    ]


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
        snippets=queue_snippets(service_access(request, principal), queue.name, fifo=fifo),
    )
