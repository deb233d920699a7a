"""Queue inspection: browse, show, change and delete messages, and their history.

Each verb is one script call in the hot store, so it happens whole or not at all.
"""

from functools import partial

import attrs
import msgspec

from storage.catalog.catalog import Catalog
from storage.domain import limits
from storage.domain.errors import (
    MessageNotFound,
    ValidationFailed,
)
from storage.domain.log.record_batch import CONTENT_TYPE, RESERVED
from storage.domain.names import QueueName
from storage.domain.queues.history import MessageHistory, Noted, history_of
from storage.domain.queues.message import (
    BrowsedMessage,
    MessageState,
    NewMessage,
)
from storage.domain.queues.queue import Queue, QueueType
from storage.hot_store.queues.contents import BrowsePage, RedelayCursor
from storage.queues.contents import QueueContents
from storage.queues.dead_letters import QueueDeadLetters, find_message, offset_of
from storage.queues.message_filter import SelectsMessage, matching


@attrs.define(eq=False, slots=False)
class QueueInspector(QueueContents):
    """Inspection of a deployment's queues by their owner."""

    _catalog: Catalog
    _dead_letters: QueueDeadLetters

    async def browse(
        self,
        name: QueueName,
        *,
        after_offset: int = -1,
        messages_max: int = limits.PAGE_ITEMS_DEFAULT,
        state: MessageState | None = None,
        selects: SelectsMessage | None = None,
    ) -> tuple[list[BrowsedMessage], int | None]:
        """Browse messages without receiving them, in the order in which they were sent.

        Also returns the offset to continue after, None at the end. A page may have fewer messages than requested, or none, and
        yet not be the last: a call looks at BROWSE_SCANNED_MAX messages at most, and ends where BROWSE_BYTES_MAX is reached.
        """
        scanned_max = limits.BROWSE_SCANNED_MAX if selects else messages_max
        page, now = BrowsePage(after_offset, scanned_max), self._clock.script_time()
        scanned = await self._page(
            name, page, lambda log, part: self._hot.browse(log, part, state, now)
        )
        return matching(scanned, selects, messages_max) if selects else scanned

    async def show(self, name: QueueName, reference: str) -> BrowsedMessage:
        """Return one message by its id or offset, unless it is a dead letter or deleted.

        Raises MessageNotFound.
        """
        return await find_message(self._catalog, name, reference, self.browse)

    async def history(self, name: QueueName, reference: str) -> MessageHistory:
        """Return the history of a message by its id or offset, also after it was deleted.

        Raises MessageNotFound if nothing is recorded about it.
        """
        offset = await offset_of(self._catalog, name, reference)
        message_history = await self._executor.run_at(name, offset, self._history)
        if not message_history.events:
            try:
                await self.show(name, reference)
            except MessageNotFound:
                await self._dead_letters.get(name, reference)
        return message_history

    async def events(self, name: QueueName) -> list[Noted]:
        """Return the recorded history of a queue's messages, partition by partition."""
        logs = await self._executor.each(name, lambda log: self._events(log, None))
        return [event for events in logs for event in events]

    async def _history(self, log: Queue, offset: int) -> MessageHistory:
        history = history_of(offset, await self._events(log, offset))
        return msgspec.structs.replace(history, offset=log.first_offset + offset)

    async def _events(self, log: Queue, offset: int | None) -> list[Noted]:
        """Return the events of a message, or of all, and those that affected all messages."""
        events: list[Noted] = []
        after = ""
        while True:
            page, after = await self._hot.history(log, offset, after)
            events += page
            if not after:
                return events

    async def change(
        self,
        name: QueueName,
        reference: str,
        *,
        delay_ms: int | None = None,
        priority: int | None = None,
    ) -> BrowsedMessage:
        """Change when a waiting message is due, or its priority; return the changed message.

        The delay counts from now. Raises MessageNotFound, MessageInFlight, and ValidationFailed for a FIFO queue's message,
        whose position is fixed, and for a priority of a message with a group.
        """
        offset, before = (
            await offset_of(self._catalog, name, reference),
            await self.show(name, reference),
        )
        queue = await self._catalog.queue(name)
        if queue.spec.type is QueueType.FIFO:
            raise ValidationFailed.at(
                "", "A message of a FIFO queue cannot be reordered", "not_supported"
            )
        changed = NewMessage(
            before.body, group=before.group, delay_ms=delay_ms, priority=priority or 0
        )
        queue.check_message(changed)
        await self._executor.run_at(
            name,
            offset,
            lambda log, own: self._hot.change(
                log, own, delay_ms, priority, self._clock.script_time()
            ),
        )
        return await self.show(name, reference)

    async def redelay(self, name: QueueName, before_ms: int) -> None:
        """Apply a changed delay of a FIFO queue, `before_ms` until now, to what it contains.

        Messages that were received before are not delayed again. Senders in other processes may use the former delay for a
        moment.
        """
        await self._executor.each(name, partial(self._redelay, before_ms))

    async def _redelay(self, before_ms: int, log: Queue) -> None:
        cursor: RedelayCursor | None = RedelayCursor()
        while cursor is not None:
            cursor = await self._hot.redelay(log, cursor, before_ms, self._clock.script_time())

    async def replace(
        self, name: QueueName, reference: str, body: bytes, content_type: str = ""
    ) -> None:
        """Change the body of a message that waits, is parked or is a dead letter.

        Its headers, position and counts stay. Raises MessageNotFound, MessageInFlight, MessageTooLarge, ValidationFailed.
        Of two concurrent changes, one stays.
        """
        offset = await offset_of(self._catalog, name, reference)

        async def replace(queue: Queue, own: int) -> None:
            record = await self._hot.record(queue, own)
            headers = tuple(header for header in record.headers if header[0] != CONTENT_TYPE)
            if content_type:
                headers = (*headers, (CONTENT_TYPE, "", content_type.encode()))
            visible = tuple(header for header in headers if not header[0].startswith(RESERVED))
            queue.check_size(NewMessage(body, visible).size_bytes)
            changed = msgspec.structs.replace(record, data=body, headers=headers)
            await self._hot.replace(queue, own, changed, self._clock.script_time())

        await self._executor.run_at(name, offset, replace)

    async def drop(self, name: QueueName, reference: str) -> None:
        """Delete one message by its id or offset, whatever its state.

        Raises MessageNotFound.
        """
        offset = await offset_of(self._catalog, name, reference)
        if not await self._executor.run_at(
            name, offset, lambda log, own: self._hot.drop(log, own, self._clock.script_time())
        ):
            raise MessageNotFound
