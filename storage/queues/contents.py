"""Base of what a queue's owner does with its contents."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import attrs

from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.names import QueueName
from storage.domain.queues.message import MessageContent
from storage.domain.queues.partitions import with_queue_offsets
from storage.domain.queues.queue import Queue
from storage.hot_store.queues.contents import BrowsePage, QueueContentStore
from storage.log.queue_executor import QueueExecutor

M = TypeVar("M", bound=MessageContent)

ReadPage = Callable[[Queue, BrowsePage], Awaitable[tuple[list[M], int | None]]]


@attrs.define(eq=False, slots=False)
class QueueContents:
    """Contents of a deployment's queues.

    Every verb raises QueueNotFound for a queue that does not exist.
    """

    _hot: QueueContentStore
    _executor: QueueExecutor
    _clock: Clock

    async def _page(
        self, name: QueueName, page: BrowsePage, read: ReadPage[M]
    ) -> tuple[list[M], int | None]:
        """Read a page of messages, from one partition after the other until it is full."""
        messages: list[M] = []
        after: int | None = page.after_offset
        while after is not None:
            messages_max = page.messages_max - len(messages)
            read_messages, after = await self._executor.page(
                name, after, partial(_read_page, read, messages_max)
            )
            messages += read_messages
            is_full = (
                len(messages) >= page.messages_max
                or _size_bytes(messages) >= limits.BROWSE_BYTES_MAX
            )
            if is_full or not _begins_partition(after):
                break
        return messages, after


async def _read_page(
    read: ReadPage[M], messages_max: int, log: Queue, after: int
) -> tuple[list[M], int | None]:
    messages, last = await read(log, BrowsePage(after, messages_max))
    return with_queue_offsets(log, messages), last


def _begins_partition(after: int | None) -> bool:
    return after is not None and (after + 1) % limits.PARTITION_OFFSETS == 0


def _size_bytes(messages: list[M]) -> int:
    return sum(len(message.body) for message in messages)
