"""Pages of a queue: overview, settings and code snippets.

The contents are in `queue_contents`.
"""

import asyncio
from contextlib import suppress

from fastapi import APIRouter, Depends, Response
from fastapi.responses import RedirectResponse

from api.admin.error_pages import PageRoute
from api.admin.pages._shared import queue_page
from api.admin.queue_snippets import queue_snippets
from api.admin.rendering import Context
from api.native.dependencies import QueuePath, may
from storage.domain.access.permissions import Action
from storage.domain.errors import TopicNotFound
from storage.domain.names import TopicName
from storage.domain.queues.queue import QueueSpec, QueueType

router = APIRouter(prefix="/ui/queues/{queue}", include_in_schema=False, route_class=PageRoute)

SEE = Depends(may(Action.QUEUE_LIST))


@router.get("", dependencies=[SEE])
async def show_queue(context: Context, queue: QueuePath) -> Response:
    """Show the overview of a queue."""
    storage = context.storage
    stored, stats, moves = await asyncio.gather(
        storage.catalog.fresh_queue(queue),
        storage.queues.stats(queue),
        storage.moves.list(queue, 4),
    )
    return queue_page(
        context,
        "overview",
        "overview",
        stored,
        stats,
        live=True,
        moves=moves,
    )


@router.get("/consumers", dependencies=[SEE])
async def show_consumers(context: Context, queue: QueuePath) -> Response:
    """Show the consumers of a queue."""
    storage = context.storage
    stored, stats, listed = await asyncio.gather(
        storage.catalog.fresh_queue(queue),
        storage.queues.stats(queue),
        storage.queue_consumers.active(queue),
    )
    return queue_page(
        context,
        "consumers",
        "consumers",
        stored,
        stats,
        live=True,
        rows=listed.consumers,
        is_estimate=listed.is_estimate,
    )


@router.get("/routes", dependencies=[SEE])
async def show_routes(context: Context, queue: QueuePath) -> Response:
    """Show that a queue has no routes, or go to the page of the topic that has them."""
    topic, storage = TopicName.of_queue(queue), context.storage
    with suppress(TopicNotFound):
        await storage.topics.fresh(topic)
        return RedirectResponse(context.link(f"/ui/topics/{topic.name}"), 303)
    stored, stats = await asyncio.gather(
        storage.catalog.fresh_queue(queue), storage.queues.stats(queue)
    )
    return queue_page(context, "routes", "routes", stored, stats, live=False, topic=topic.name)


@router.get("/settings", dependencies=[SEE])
async def show_settings(context: Context, queue: QueuePath) -> Response:
    """Show the settings of a queue."""
    stored, stats = await asyncio.gather(
        context.storage.catalog.fresh_queue(queue), context.storage.queues.stats(queue)
    )
    return queue_page(
        context,
        "settings",
        "settings",
        stored,
        stats,
        live=False,
        spec=stored.spec,
        default=QueueSpec(type=stored.spec.type),
    )


@router.get("/code", dependencies=[SEE])
async def show_code(context: Context, queue: QueuePath) -> Response:
    """Show programs that use a queue."""
    stored, stats = await asyncio.gather(
        context.storage.catalog.fresh_queue(queue), context.storage.queues.stats(queue)
    )
    fifo = stored.spec.type is QueueType.FIFO
    return queue_page(
        context,
        "code",
        "code",
        stored,
        stats,
        live=False,
        snippets=queue_snippets(context.service, queue.name, fifo=fifo),
    )
