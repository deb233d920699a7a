"""Queue inspection: browse, edit and delete messages; dead letters; parked groups.

Each verb is one script call in the hot store, so it happens whole or not at all.
"""

from functools import partial

import msgspec

from storage.catalog.catalog import Catalog
from storage.concurrency.ttl_cache import TtlCache
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import (
    GroupNotParked,
    MessageNotFound,
    ValidationFailed,
)
from storage.domain.log.record_batch import CONTENT_TYPE, RESERVED
from storage.domain.names import QueueName
from storage.domain.queues.history import MessageHistory, Noted, history_of
from storage.domain.queues.message import (
    BrowsedMessage,
    DeadLetter,
    DeathReason,
    MessageState,
    NewMessage,
    WhichDead,
    offset_in,
)
from storage.domain.queues.policies import ParkedGroup
from storage.domain.queues.queue import Queue, QueueType
from storage.log.queue_executor import QueueExecutor
from storage.redis.queues.inspection import HotContents

_ALL_DEAD = WhichDead()


class Contents:
    """The contents of a deployment's queues.

    Every verb raises QueueNotFound for a queue that does not exist.
    """

    def __init__(
        self, hot: HotContents, on_queue: QueueExecutor, catalog: Catalog, clock: Clock
    ) -> None:
        self._hot = hot
        self._on = on_queue
        self._catalog = catalog
        self._clock = clock
        self._reasons_known: TtlCache[list[DeathReason]] = TtlCache(
            limits.DEATH_REASONS_KNOWN_MS, clock
        )

    async def browse(
        self,
        name: QueueName,
        *,
        after_offset: int = -1,
        messages_max: int = limits.PAGE_ITEMS_DEFAULT,
        state: MessageState | None = None,
    ) -> tuple[list[BrowsedMessage], int | None]:
        """Browse messages without receiving them, in the order in which they were sent.

        Also returns the offset to continue after, None at the end. A page may have fewer messages than requested, or none, and
        yet not be the last: a call looks at BROWSE_LOOKS_MAX messages at most, and ends where BROWSE_BYTES_MAX is reached.
        """
        return await self._on(
            name,
            lambda queue: self._hot.browse(
                queue, after_offset, messages_max, state, self._clock.script_time()
            ),
        )

    async def message(self, name: QueueName, word: str) -> BrowsedMessage:
        """Return one message by its id or offset, unless it is a dead letter or deleted.

        Raises MessageNotFound.
        """
        offset = await self._offset_of(name, word)
        messages, _ = await self.browse(name, after_offset=offset - 1, messages_max=1)
        if not messages or messages[0].offset != offset:
            raise MessageNotFound
        return messages[0]

    async def history(self, name: QueueName, word: str) -> MessageHistory:
        """Return the history of a message by its id or offset, also after it was deleted.

        Raises MessageNotFound if nothing is recorded about it.
        """
        offset = await self._offset_of(name, word)
        message_history = history_of(offset, await self.noted(name, offset))
        if not message_history.events:
            try:
                await self.message(name, word)
            except MessageNotFound:
                await self.dead_letter(name, word)
        return message_history

    async def noted(self, name: QueueName, offset: int | None = None) -> list[Noted]:
        """Return the recorded history of a queue's messages.

        With `offset`, of that message, and of events that affected all messages.
        """
        noted: list[Noted] = []
        after = ""
        while True:
            read = partial(self._read_history, offset, after)
            events, after = await self._on(name, read)
            noted += events
            if not after:
                return noted

    async def _read_history(
        self, offset: int | None, after: str, queue: Queue
    ) -> tuple[list[Noted], str]:
        return await self._hot.history(queue, offset, after)

    async def change(
        self,
        name: QueueName,
        word: str,
        *,
        delay_ms: int | None = None,
        priority: int | None = None,
    ) -> BrowsedMessage:
        """Change when a waiting message is due, or its priority; return the changed message.

        The delay counts from now. Raises MessageNotFound, MessageInFlight, and ValidationFailed for a FIFO queue's message,
        whose position is fixed, and for a priority of a message with a group.
        """
        offset, before = await self._offset_of(name, word), await self.message(name, word)
        queue = await self._catalog.queue(name)
        if queue.spec.type is QueueType.FIFO:
            raise ValidationFailed.at(
                "", "A message of a FIFO queue cannot be reordered", "not_supported"
            )
        changed = NewMessage(
            before.body, group=before.group, delay_ms=delay_ms, priority=priority or 0
        )
        queue.check_message(changed)
        await self._on(
            name,
            lambda queue: self._hot.change(
                queue, offset, delay_ms, priority, self._clock.script_time()
            ),
        )
        return await self.message(name, word)

    async def replace(
        self, name: QueueName, word: str, body: bytes, content_type: str = ""
    ) -> None:
        """Change the body of a message that waits, is parked or is a dead letter.

        Its headers, position and counts stay. Raises MessageNotFound, MessageInFlight, MessageTooLarge, ValidationFailed.
        Of two concurrent changes, one stays.
        """
        offset = await self._offset_of(name, word)

        async def replace(queue: Queue) -> None:
            record = await self._hot.record(queue, offset)
            headers = tuple(header for header in record.headers if header[0] != CONTENT_TYPE)
            if content_type:
                headers = (*headers, (CONTENT_TYPE, "", content_type.encode()))
            own = tuple(header for header in headers if not header[0].startswith(RESERVED))
            queue.check_size(NewMessage(body, own).size_bytes)
            changed = msgspec.structs.replace(record, data=body, headers=headers)
            await self._hot.replace(queue, offset, changed)

        await self._on(name, replace)

    async def drop(self, name: QueueName, word: str) -> None:
        """Delete one message by its id or offset, whatever its state.

        Raises MessageNotFound.
        """
        offset = await self._offset_of(name, word)
        if not await self._on(
            name, lambda queue: self._hot.drop(queue, offset, self._clock.script_time())
        ):
            raise MessageNotFound

    async def _offset_of(self, name: QueueName, word: str) -> int:
        offset = offset_in((await self._catalog.queue(name)).log_id, word)
        if offset is None:
            raise MessageNotFound
        return offset

    async def dead_letters(
        self,
        name: QueueName,
        *,
        after_offset: int = -1,
        messages_max: int = limits.PAGE_ITEMS_DEFAULT,
    ) -> tuple[list[DeadLetter], int | None]:
        """Return the queue's dead letters in the order sent, and the offset to continue after.

        That offset is None at the end. A page ends early where BROWSE_BYTES_MAX is reached.
        """
        return await self._on(
            name, lambda queue: self._hot.dead_letters(queue, after_offset, messages_max)
        )

    async def dead_letter(self, name: QueueName, word: str) -> DeadLetter:
        """Return one dead letter by its id or offset.

        Raises MessageNotFound.
        """
        offset = await self._offset_of(name, word)
        letters, _ = await self.dead_letters(name, after_offset=offset - 1, messages_max=1)
        if not letters or letters[0].offset != offset:
            raise MessageNotFound
        return letters[0]

    async def death_reasons(self, name: QueueName) -> list[DeathReason]:
        """Count the dead letters by reason, the most frequent first.

        Reads each of them.
        """
        sums: dict[str, DeathReason] = {}
        after: int | None = -1
        while after is not None:
            reasons, after = await self._on(name, partial(self._death_reasons, after))
            for entry in reasons:
                sums[entry.reason] = _together(sums.get(entry.reason, entry), entry)
        return sorted(sums.values(), key=lambda entry: (-entry.count, entry.reason))

    async def recent_death_reasons(self, name: QueueName, dead_letters: int) -> list[DeathReason]:
        """Count the dead letters by reason, with caching, for pages that poll.

        `dead_letters` is the queue's number of them. If that is more than DEATH_REASONS_COUNTED_MAX, the counts may be
        DEATH_REASONS_KNOWN_MS old.
        """
        if dead_letters <= limits.DEATH_REASONS_COUNTED_MAX:
            return await self.death_reasons(name)
        return await self._reasons_known.get(name, partial(self.death_reasons, name))

    async def _death_reasons(
        self, after: int, queue: Queue
    ) -> tuple[list[DeathReason], int | None]:
        return await self._hot.death_reasons(queue, after)

    async def redrive(
        self, name: QueueName, which: WhichDead = _ALL_DEAD, *, messages_max: int | None = None
    ) -> int:
        """Make dead letters ready again, oldest first, with reset counts and retention.

        Messages that are dead-lettered in the meantime are not included. Returns the number of redriven messages.
        """
        redriven, after = 0, -1
        while messages_max is None or redriven < messages_max:
            most = limits.BATCH_MESSAGES_MAX
            if messages_max is not None:
                most = min(most, messages_max - redriven)
            count, last = await self.redrive_some(name, which, after, most)
            redriven += count
            if last is None:
                break
            after = last
        return redriven

    async def redrive_some(
        self, name: QueueName, which: WhichDead, after_offset: int, messages_max: int
    ) -> tuple[int, int | None]:
        """Redrive one round of dead letters, from the first after `after_offset`.

        Returns how many became ready, and the offset to continue after, None at the end.
        """

        async def redrive(queue: Queue) -> tuple[int, int | None]:
            parsed = [offset_in(queue.log_id, word) for word in which.words]
            offsets = [offset for offset in parsed if offset is not None]
            if which.words and not offsets:
                return 0, None
            now = self._clock.script_time()
            return await self._hot.redrive(queue, after_offset, messages_max, which, offsets, now)

        return await self._on(name, redrive)

    async def parked_groups(
        self, name: QueueName, *, after: str = "", groups_max: int = limits.PAGE_ITEMS_DEFAULT
    ) -> list[ParkedGroup]:
        """Return the parked groups by name, from the first after `after`."""
        return await self._on(name, lambda queue: self._hot.parked_groups(queue, after, groups_max))

    async def park_group(self, name: QueueName, group: str, reason: str) -> None:
        """Deliver nothing of a group until it is resumed; its messages in flight stay in flight.

        A group that is parked already keeps its reason. Raises ValidationFailed.
        """
        if not 1 <= len(group) <= limits.GROUP_CHARACTERS_MAX:
            detail = f"1 to {limits.GROUP_CHARACTERS_MAX} characters"
            raise ValidationFailed.at("/group", detail, "out_of_range")
        if len(reason) > limits.REASON_CHARACTERS_MAX:
            raise ValidationFailed.at(
                "/reason", "The reason can have at most 1024 characters", "too_long"
            )
        await self._on(
            name, lambda queue: self._hot.park(queue, group, reason, self._clock.script_time())
        )

    async def resume_group(self, name: QueueName, group: str) -> int:
        """Deliver a parked group again, in order; return how many messages were parked.

        The message that caused the parking has all its attempts again. Raises GroupNotParked.
        """
        waited = await self._on(name, lambda queue: self._hot.resume(queue, group))
        if waited is None:
            raise GroupNotParked
        return waited


def _together(sum_: DeathReason, other: DeathReason) -> DeathReason:
    if sum_ is other:
        return sum_
    return DeathReason(
        sum_.reason,
        sum_.count + other.count,
        min(sum_.first_died_at_ms, other.first_died_at_ms),
        max(sum_.last_died_at_ms, other.last_died_at_ms),
    )
