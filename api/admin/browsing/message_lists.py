"""Pages of the messages and dead letters that a query selects."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from api.admin.browsing.message_query import MessageQuery
from api.admin.lists import PAGE_ROWS
from storage.bootstrap import Storage
from storage.domain.names import QueueName
from storage.domain.queues.message import BrowsedMessage, DeadLetter
from storage.queues.message_filter import selects_message

M = TypeVar("M", BrowsedMessage, DeadLetter)

Page = tuple[list[M], int | None]
"""Messages, and the offset after which the next page begins."""

_SCANS_MAX = (
    4  # calls of one page: each scans BROWSE_SCANNED_MAX messages, and ends at BROWSE_BYTES_MAX
)


async def messages_of(
    storage: Storage, queue: QueueName, query: MessageQuery
) -> Page[BrowsedMessage]:
    """Return a page of the messages of a query. Raises ValidationFailed."""
    selects = selects_message(query.to_filter())

    async def browse(after: int, rows: int) -> Page[BrowsedMessage]:
        return await storage.inspector.browse(
            queue, after_offset=after, messages_max=rows, state=query.state, selects=selects
        )

    return await _scan(browse, query.after)


async def dead_letters_of(
    storage: Storage, queue: QueueName, query: MessageQuery
) -> Page[DeadLetter]:
    """Return a page of the dead letters of a query. Raises ValidationFailed."""
    selects = selects_message(query.to_filter())

    async def browse(after: int, rows: int) -> Page[DeadLetter]:
        return await storage.dead_letters.browse(
            queue, after_offset=after, messages_max=rows, selects=selects
        )

    return await _scan(browse, query.after)


async def _scan(browse: Callable[[int, int], Awaitable[Page[M]]], after: int) -> Page[M]:
    """Return a page of messages.

    With a filter few may match: it scans many messages, but not all of them, so a page may be short or empty and yet not be
    the last.
    """
    rows: list[M] = []
    for _ in range(_SCANS_MAX):
        messages, next_offset = await browse(after, PAGE_ROWS - len(rows))
        rows += messages
        if next_offset is None or len(rows) == PAGE_ROWS:
            return rows, next_offset
        after = next_offset
    return rows, after
