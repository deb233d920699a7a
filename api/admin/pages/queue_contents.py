"""Contents of a queue: messages, dead letters and parked groups."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from fastapi import APIRouter, Depends, Response

from api.admin.browsing.body_preview import summary
from api.admin.browsing.field_columns import field_columns
from api.admin.browsing.message_lists import Page, dead_letters_of, messages_of
from api.admin.browsing.message_query import MessageQueryDep
from api.admin.error_pages import PageRoute
from api.admin.lists import PAGE_ROWS, Words
from api.admin.pages._shared import queue_page
from api.admin.rendering import Context
from api.native.dependencies import QueuePath, may
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.errors import ValidationFailed
from storage.domain.queues.message import BrowsedMessage, DeadLetter, MessageState
from storage.domain.queues.moves import MoveState

router = APIRouter(prefix="/ui/queues/{queue}", include_in_schema=False, route_class=PageRoute)

SEE = Depends(may(Action.QUEUE_LIST))
PEEK = Depends(may(Action.QUEUE_PEEK))

_MOVES_MAX = 8
M = TypeVar("M", BrowsedMessage, DeadLetter)


@router.get("/messages", dependencies=[PEEK])
async def browse(context: Context, queue: QueuePath, query: MessageQueryDep) -> Response:
    """Show the messages of a queue without receiving any."""
    storage = context.storage
    stored, stats, (page, fault) = await asyncio.gather(
        storage.catalog.fresh_queue(queue),
        storage.queues.stats(queue),
        _page_or_fault(messages_of(storage, queue, query)),
    )
    rows, next_offset = page
    return queue_page(
        context,
        "messages",
        "messages",
        stored,
        stats,
        live=True,
        rows=[(row, summary(row.body)) for row in rows],
        fields=field_columns(query.columns, [row.body for row in rows]),
        more=next_offset,
        states=list(MessageState),
        query=query,
        fault=fault,
    )


async def _page_or_fault(page: Awaitable[Page[M]]) -> tuple[Page[M], str]:
    """Return a page; an empty one, and the reason, if its filter is invalid."""
    try:
        return await page, ""
    except ValidationFailed as error:
        return ([], None), "; ".join(fault.detail for fault in error.faults)


@router.get("/dead-letters", dependencies=[PEEK])
async def list_dead_letters(context: Context, queue: QueuePath, query: MessageQueryDep) -> Response:
    """List dead letters, by reason."""
    storage = context.storage
    stored, stats, moves, (page, fault) = await asyncio.gather(
        storage.catalog.fresh_queue(queue),
        storage.queues.stats(queue),
        storage.moves.list(queue, _MOVES_MAX),
        _page_or_fault(dead_letters_of(storage, queue, query)),
    )
    rows, next_offset = page
    reasons, sources = await asyncio.gather(
        storage.dead_letters.recent_reasons(queue, stats.dead_lettered),
        storage.catalog.dead_letter_sources(queue, limit=PAGE_ROWS),
    )
    return queue_page(
        context,
        "dead_letters",
        "dead",
        stored,
        stats,
        live=True,
        reasons=reasons,
        moves=moves,
        running=any(move.state is MoveState.RUNNING for move in moves),
        sources=sources,
        rate_max=limits.MOVE_RATE_MAX,
        rows=[(row, summary(row.body)) for row in rows],
        fields=field_columns(query.columns, [row.body for row in rows]),
        more=next_offset,
        query=query,
        fault=fault,
    )


@router.get("/groups", dependencies=[SEE])
async def list_groups(context: Context, queue: QueuePath, after: Words = "") -> Response:
    """List the parked groups: nothing of them is delivered until they are resumed."""
    storage = context.storage
    stored, stats, groups = await asyncio.gather(
        storage.catalog.fresh_queue(queue),
        storage.queues.stats(queue),
        storage.parked_groups.browse(queue, after=after, groups_max=PAGE_ROWS + 1),
    )
    return queue_page(
        context,
        "groups",
        "groups",
        stored,
        stats,
        live=True,
        groups=groups[:PAGE_ROWS],
        more=len(groups) > PAGE_ROWS,
    )
