"""Contents of a queue: messages, dead letters, parked groups, and one message's history."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

from fastapi import APIRouter, Depends, Query, Response

from api.admin.body_preview import preview, summary
from api.admin.error_pages import PageRoute
from api.admin.lists import PAGE_ROWS, Words
from api.admin.pages._shared import queue_page
from api.admin.rendering import Context, as_file
from api.native.dependencies import QueuePath, StorageDep, may
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.errors import MessageNotFound
from storage.domain.names import QueueName
from storage.domain.queues.message import BrowsedMessage, DeadLetter, MessageState
from storage.domain.queues.moves import MoveState

router = APIRouter(prefix="/ui/queues/{queue}", include_in_schema=False, route_class=PageRoute)

SEE = Depends(may(Action.QUEUE_LIST))
PEEK = Depends(may(Action.QUEUE_PEEK))
After = Annotated[int, Query(ge=-1, le=limits.OFFSET_MAX)]

_MOVES_MAX = 8
_SCANS_MAX = (
    4  # calls of one page: each scans BROWSE_SCANNED_MAX messages, and ends at BROWSE_BYTES_MAX
)

M = TypeVar("M", BrowsedMessage, DeadLetter)


@router.get("/messages", dependencies=[PEEK])
async def browse(
    context: Context,
    queue: QueuePath,
    state: Annotated[MessageState | None, Query()] = None,
    q: Words = "",
    after: After = -1,
) -> Response:
    """Show the messages of a queue without receiving any."""
    storage = context.storage
    stored, stats, (rows, next_offset) = await asyncio.gather(
        storage.catalog.fresh_queue(queue),
        storage.queues.stats(queue),
        _browse(storage, queue, state, q, after),
    )
    return queue_page(
        context,
        "messages",
        "messages",
        stored,
        stats,
        live=True,
        rows=[(row, summary(row.body)) for row in rows],
        more=next_offset,
        state=state,
        states=list(MessageState),
        q=q,
        after=after,
    )


async def _browse(
    storage: Storage, queue: QueueName, state: MessageState | None, words: str, after: int
) -> tuple[list[BrowsedMessage], int | None]:
    """Return a page of messages that contain the text, and where the next page begins."""

    async def read_page(after: int, rows: int) -> tuple[list[BrowsedMessage], int | None]:
        return await storage.inspector.browse(
            queue, after_offset=after, messages_max=rows, state=state
        )

    return await _scan(read_page, lambda message: _contains(message, words), after, bool(words))


async def _scan(
    read_page: Callable[[int, int], Awaitable[tuple[list[M], int | None]]],
    matches: Callable[[M], bool],
    after: int,
    chosen: bool,
) -> tuple[list[M], int | None]:
    """Return a page of matching messages, and the offset after which the next page begins.

    With a filter (`chosen`) few may match: it scans many messages, but not all of them, so a page may be short or empty
    and yet not be the last.
    """
    rows: list[M] = []
    for _ in range(_SCANS_MAX):
        most = limits.BATCH_MESSAGES_MAX if chosen else PAGE_ROWS - len(rows)
        messages, next_offset = await read_page(after, most)
        for message in filter(matches, messages):
            rows.append(message)
            if len(rows) == PAGE_ROWS and message is not messages[-1]:
                return rows, message.offset
        if next_offset is None or len(rows) == PAGE_ROWS:
            return rows, next_offset
        after = next_offset
    return rows, after


def _contains(message: BrowsedMessage | DeadLetter, words: str) -> bool:
    if not words:
        return True
    encoded = words.encode()
    return (
        encoded in message.body
        or words in (message.message_id, message.group)
        or any(words in name or encoded in value for name, _, value in message.headers)
    )


@router.get("/messages/{message}", dependencies=[PEEK])
async def show_message(
    context: Context, queue: QueuePath, message: str, form: Words = ""
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
    receivers = await storage.queue_consumers.receivers_of(queue, received)
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
    )


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


@router.get("/messages/{message}/body", dependencies=[PEEK])
async def download(queue: QueuePath, message: str, storage: StorageDep) -> Response:
    """Download the body as a file."""
    entry = await _message(storage, queue, message)
    return as_file(entry.body, f"{queue.name}-{entry.offset}.bin")


@router.get("/dead-letters", dependencies=[PEEK])
async def list_dead_letters(
    context: Context, queue: QueuePath, reason: str = "", q: Words = "", after: After = -1
) -> Response:
    """List dead letters, by reason."""
    storage = context.storage
    stored, stats, moves, (rows, next_offset) = await asyncio.gather(
        storage.catalog.fresh_queue(queue),
        storage.queues.stats(queue),
        storage.moves.list(queue, _MOVES_MAX),
        _dead(storage, queue, reason, q, after),
    )
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
        reason=reason,
        moves=moves,
        running=any(move.state is MoveState.RUNNING for move in moves),
        sources=sources,
        rate_max=limits.MOVE_RATE_MAX,
        rows=[(row, summary(row.body)) for row in rows],
        more=next_offset,
        q=q,
        after=after,
    )


async def _dead(
    storage: Storage, queue: QueueName, reason: str, words: str, after: int
) -> tuple[list[DeadLetter], int | None]:
    """Return a page of the reason's dead letters that contain the text, and the next offset."""

    async def read_page(after: int, rows: int) -> tuple[list[DeadLetter], int | None]:
        return await storage.dead_letters.browse(queue, after_offset=after, messages_max=rows)

    def matches_filter(letter: DeadLetter) -> bool:
        return (not reason or letter.reason == reason) and _contains(letter, words)

    return await _scan(read_page, matches_filter, after, bool(reason or words))


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
