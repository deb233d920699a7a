"""Message page: body, attempts, history and neighbours of a message or dead letter."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from fastapi import APIRouter, Depends, Response

from api.admin.browsing.body_preview import preview
from api.admin.browsing.message_lists import dead_letters_of, messages_of
from api.admin.browsing.message_query import MessageQuery, MessageQueryDep
from api.admin.browsing.neighbours import Neighbours, neighbours_in, neighbours_of
from api.admin.error_pages import PageRoute
from api.admin.lists import Words
from api.admin.pages._shared import queue_page, visible_deliveries
from api.admin.rendering import Context, as_file
from api.native.dependencies import QueuePath, StorageDep, may
from storage.bootstrap import Storage
from storage.domain.access.permissions import Action
from storage.domain.errors import MessageNotFound, ValidationFailed
from storage.domain.names import QueueName
from storage.domain.queues.history import MessageAttempt
from storage.domain.queues.message import BrowsedMessage, DeadLetter

router = APIRouter(
    prefix="/ui/queues/{queue}/messages/{message}",
    include_in_schema=False,
    route_class=PageRoute,
)

PEEK = Depends(may(Action.QUEUE_PEEK))


@router.get("", dependencies=[PEEK])
async def show_message(
    context: Context, queue: QueuePath, message: str, query: MessageQueryDep, form: Words = ""
) -> Response:
    """Show a message or dead letter with its history; only the history, once it is deleted."""
    storage = context.storage
    stored, stats, history = await asyncio.gather(
        storage.catalog.fresh_queue(queue),
        storage.queues.stats(queue),
        storage.inspector.history(queue, message),
    )
    entry = await _message_or_none(storage, queue, message)
    dead = isinstance(entry, DeadLetter)
    received = [*history.attempts, *([] if entry is None else [entry])]
    receivers, beside, deliveries = await asyncio.gather(
        storage.queue_consumers.receivers_of(queue, received),
        _neighbours(storage, queue, query, history.offset, dead),
        storage.deliveries.of_message(queue, message if entry is None else entry.message_id),
    )
    return queue_page(
        context,
        "message",
        "dead" if dead else "messages",
        stored,
        stats,
        live=False,
        message_id=message,
        one=entry,
        dead=dead,
        history=history,
        body=None if entry is None else preview(entry.body, form),
        receivers=receivers,
        beside=beside,
        deliveries=visible_deliveries(context, deliveries),
        query=query,
    )


async def _neighbours(
    storage: Storage, queue: QueueName, query: MessageQuery, offset: int, dead: bool
) -> Neighbours:
    """Return the neighbours in the list of the query, or in the whole queue without a query."""
    if query.is_restricted or query.after >= 0:
        return neighbours_in(await _listed(storage, queue, query, dead), offset)
    browse = storage.dead_letters.browse if dead else storage.inspector.browse

    async def first_after(start: int) -> BrowsedMessage | DeadLetter | None:
        messages, _ = await browse(queue, after_offset=start, messages_max=1)
        return messages[0] if messages else None

    return await neighbours_of(first_after, offset)


async def _listed(
    storage: Storage, queue: QueueName, query: MessageQuery, dead: bool
) -> Sequence[BrowsedMessage | DeadLetter]:
    try:
        if dead:
            return (await dead_letters_of(storage, queue, query))[0]
        return (await messages_of(storage, queue, query))[0]
    except ValidationFailed:
        return ()


@router.get("/preview", dependencies=[PEEK])
async def show_preview(context: Context, queue: QueuePath, message: str) -> Response:
    """Return a fragment with the body, the headers and the last failure of a message."""
    entry = await _message(context.storage, queue, message)
    return context.render(
        "queue/preview.html",
        one=entry,
        body=preview(entry.body),
        failure=await _last_failure(context.storage, queue, entry),
    )


class Failure(NamedTuple):
    """The last failed attempt of a message."""

    reason: str
    details: str


async def _last_failure(
    storage: Storage, queue: QueueName, entry: BrowsedMessage | DeadLetter
) -> Failure | None:
    if isinstance(entry, DeadLetter):
        return Failure(entry.last_failure_reason or entry.reason, entry.details)
    if not entry.failures or not (await storage.catalog.queue(queue)).spec.history:
        return None
    attempts = (await storage.inspector.history(queue, str(entry.offset))).attempts
    return next((_failure(attempt) for attempt in reversed(attempts) if attempt.reason), None)


def _failure(attempt: MessageAttempt) -> Failure:
    return Failure(attempt.reason, attempt.details)


@router.get("/body", dependencies=[PEEK])
async def download(queue: QueuePath, message: str, storage: StorageDep) -> Response:
    """Download the body as a file."""
    entry = await _message(storage, queue, message)
    return as_file(entry.body, f"{queue.name}-{entry.offset}.bin")


async def _message_or_none(
    storage: Storage, queue: QueueName, message_id: str
) -> BrowsedMessage | DeadLetter | None:
    try:
        return await _message(storage, queue, message_id)
    except MessageNotFound:
        return None


async def _message(
    storage: Storage, queue: QueueName, message_id: str
) -> BrowsedMessage | DeadLetter:
    try:
        return await storage.inspector.show(queue, message_id)
    except MessageNotFound:
        return await storage.dead_letters.get(queue, message_id)
