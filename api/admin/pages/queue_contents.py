"""What one queue holds: messages, dead letters, parked groups; and one message with what happened to it."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from api.admin.bodies import shown, summary
from api.admin.lists import PAGE_ROWS, Words
from api.admin.pages.queue import queue_page
from api.admin.refusing import PageRoute
from api.native.dependencies import QueuePath, StorageDep, may
from storage.domain import limits
from storage.domain.access import Action
from storage.domain.errors import MessageNotFound
from storage.domain.messages import BrowsedMessage, DeadLetter, MessageState
from storage.domain.moves import MoveState
from storage.domain.names import QueueName
from storage.lifespan import Storage

router = APIRouter(prefix="/ui/queues/{queue}", include_in_schema=False, route_class=PageRoute)

SEE = Depends(may(Action.QUEUE_LIST))
PEEK = Depends(may(Action.QUEUE_PEEK))
After = Annotated[int, Query(ge=-1, le=limits.OFFSET_MAX)]

_MOVES_SHOWN = 8
_LOOKS_MAX = 4  # calls of one page: each looks at BROWSE_LOOKS_MAX messages


@router.get("/messages", dependencies=[PEEK])
async def browse(
    request: Request,
    queue: QueuePath,
    storage: StorageDep,
    state: Annotated[MessageState | None, Query()] = None,
    q: Words = "",
    after: After = -1,
) -> Response:
    """The messages it holds, without taking any."""
    found, stats, (rows, more) = await asyncio.gather(
        storage.catalog.fresh_queue(queue),
        storage.queues.stats(queue),
        _browse(storage, queue, state, q, after),
    )
    return queue_page(
        request,
        "messages",
        "messages",
        found,
        stats,
        live=True,
        rows=[(row, summary(row.body)) for row in rows],
        more=more,
        state=state,
        states=list(MessageState),
        q=q,
        after=after,
    )


async def _browse(
    storage: Storage, queue: QueueName, state: MessageState | None, words: str, after: int
) -> tuple[list[BrowsedMessage], int | None]:
    """A page of those that contain the words in body, group or a header, and where the next begins. A bounded search."""
    rows: list[BrowsedMessage] = []
    more: int | None = after
    for _ in range(_LOOKS_MAX):
        some, more = await storage.contents.browse(
            queue, after_offset=more or after, messages_max=PAGE_ROWS - len(rows), state=state
        )
        rows += [message for message in some if _contains(message, words)]
        if more is None or len(rows) >= PAGE_ROWS:
            break
    return rows, more


def _contains(message: BrowsedMessage | DeadLetter, words: str) -> bool:
    if not words:
        return True
    said = words.encode()
    return (
        said in message.body
        or words in (message.message_id, message.group)
        or any(words in name or said in value for name, _, value in message.headers)
    )


@router.get("/messages/{message}", dependencies=[PEEK])
async def show_message(
    request: Request, queue: QueuePath, message: str, storage: StorageDep, form: Words = ""
) -> Response:
    """One message, dead or alive, and what has happened to it; only that, once it is gone."""
    found, stats, history = await asyncio.gather(
        storage.catalog.fresh_queue(queue),
        storage.queues.stats(queue),
        storage.contents.history(queue, message),
    )
    one = await _message_or_none(storage, queue, message)
    dead = isinstance(one, DeadLetter)
    return queue_page(
        request,
        "message",
        "dead" if dead else "messages",
        found,
        stats,
        live=False,
        word=message,
        one=one,
        dead=dead,
        history=history,
        body=None if one is None else shown(one.body, form),
    )


async def _message_or_none(
    storage: Storage, queue: QueueName, word: str
) -> BrowsedMessage | DeadLetter | None:
    try:
        return await _message(storage, queue, word)
    except MessageNotFound:
        return None


async def _message(storage: Storage, queue: QueueName, word: str) -> BrowsedMessage | DeadLetter:
    try:
        return await storage.contents.message(queue, word)
    except MessageNotFound:
        return await storage.contents.dead_letter(queue, word)


@router.get("/messages/{message}/body", dependencies=[PEEK])
async def download(queue: QueuePath, message: str, storage: StorageDep) -> Response:
    """Its bytes, as a file: never as something that a browser would show."""
    one = await _message(storage, queue, message)
    headers = {
        "content-disposition": f'attachment; filename="{queue.name}-{one.offset}.bin"',
        "x-content-type-options": "nosniff",
        "content-security-policy": "default-src 'none'; sandbox",
        "cache-control": "no-store",
    }
    return Response(one.body, headers=headers, media_type="application/octet-stream")


@router.get("/dead-letters", dependencies=[PEEK])
async def list_dead_letters(
    request: Request,
    queue: QueuePath,
    storage: StorageDep,
    reason: str = "",
    q: Words = "",
    after: After = -1,
) -> Response:
    """What it gave up on, by reason."""
    found, stats, reasons, moves, (rows, more) = await asyncio.gather(
        storage.catalog.fresh_queue(queue),
        storage.queues.stats(queue),
        storage.contents.death_reasons(queue),
        storage.moves.list(queue, _MOVES_SHOWN),
        _dead(storage, queue, reason, q, after),
    )
    sources = await storage.catalog.dead_letter_sources(queue, limit=PAGE_ROWS)
    return queue_page(
        request,
        "dead_letters",
        "dead",
        found,
        stats,
        live=True,
        reasons=reasons,
        reason=reason,
        moves=moves,
        running=any(move.state is MoveState.RUNNING for move in moves),
        sources=sources,
        rate_max=limits.MOVE_RATE_MAX,
        rows=[(row, summary(row.body)) for row in rows],
        more=more,
        q=q,
        after=after,
    )


async def _dead(
    storage: Storage, queue: QueueName, reason: str, words: str, after: int
) -> tuple[list[DeadLetter], int | None]:
    """As `_browse`, of dead letters."""
    rows: list[DeadLetter] = []
    for _ in range(_LOOKS_MAX):
        some = await storage.contents.dead_letters(
            queue, after_offset=after, messages_max=limits.BATCH_MESSAGES_MAX
        )
        for letter in some:
            after = letter.offset
            if (not reason or letter.reason == reason) and _contains(letter, words):
                rows.append(letter)
            if len(rows) >= PAGE_ROWS:
                return rows, after
        if len(some) < limits.BATCH_MESSAGES_MAX:
            return rows, None
    return rows, after


@router.get("/groups", dependencies=[SEE])
async def list_groups(
    request: Request, queue: QueuePath, storage: StorageDep, after: Words = ""
) -> Response:
    """Groups of which nothing is delivered until they are resumed."""
    found, stats, groups = await asyncio.gather(
        storage.catalog.fresh_queue(queue),
        storage.queues.stats(queue),
        storage.contents.parked_groups(queue, after=after, groups_max=PAGE_ROWS + 1),
    )
    return queue_page(
        request,
        "groups",
        "groups",
        found,
        stats,
        live=True,
        groups=groups[:PAGE_ROWS],
        more=len(groups) > PAGE_ROWS,
    )
