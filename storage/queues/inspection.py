"""What queues hold: browse, show, change and drop messages; dead letters; parked groups.

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
    """What the queues of a deployment hold. Every verb raises QueueNotFound for a queue that is not there."""

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
        """Look at messages without taking them, in the order they were sent in.

        Also gives the offset to go on after, None at the end. A page may hold fewer than asked, or none, and
        yet not be the last: a call looks at BROWSE_LOOKS_MAX messages at most, and ends where BROWSE_BYTES_MAX is reached.
        """
        return await self._on(
            name,
            lambda queue: self._hot.browse(
                queue, after_offset, messages_max, state, self._clock.script_time()
            ),
        )

    async def message(self, name: QueueName, word: str) -> BrowsedMessage:
        """One message, by its id or its offset, unless it is dead or gone. Raises MessageNotFound."""
        offset = await self._offset_of(name, word)
        found, _ = await self.browse(name, after_offset=offset - 1, messages_max=1)
        if not found or found[0].offset != offset:
            raise MessageNotFound
        return found[0]

    async def history(self, name: QueueName, word: str) -> MessageHistory:
        """What has happened to a message, by its id or its offset, also after it is gone. Raises MessageNotFound
        where nothing is known of it."""
        offset = await self._offset_of(name, word)
        found = history_of(offset, await self.noted(name, offset))
        if not found.events:
            try:
                await self.message(name, word)
            except MessageNotFound:
                await self.dead_letter(name, word)
        return found

    async def noted(self, name: QueueName, offset: int | None = None) -> list[Noted]:
        """What is kept of the history of a queue's messages, or of one and what met all of them."""
        noted: list[Noted] = []
        after = ""
        while True:
            read = partial(self._read_history, offset, after)
            some, after = await self._on(name, read)
            noted += some
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
        """Change when a waiting message is due, from now on, or its priority; the message as it is then.

        Raises MessageNotFound, MessageInFlight, and ValidationFailed for a fifo queue's message, which has its
        place, and for a priority of one with a group.
        """
        offset, before = await self._offset_of(name, word), await self.message(name, word)
        queue = await self._catalog.queue(name)
        if queue.spec.type is QueueType.FIFO:
            raise ValidationFailed.at("", "A fifo queue's message has its place", "not_supported")
        asked = NewMessage(
            before.body, group=before.group, delay_ms=delay_ms, priority=priority or 0
        )
        queue.check_message(asked)
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
        """Change the body of a message that waits, is parked or dead; its headers, place and counts stay.

        Raises MessageNotFound, MessageInFlight, MessageTooLarge, ValidationFailed. Of two changes at the same time one stays.
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
        """Drop one message, by its id or its offset, whatever its state. Raises MessageNotFound."""
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
        """The messages the queue gave up on, in the order they were sent in, and the offset to go on after, None at the
        end. A page ends early where BROWSE_BYTES_MAX is reached."""
        return await self._on(
            name, lambda queue: self._hot.dead_letters(queue, after_offset, messages_max)
        )

    async def dead_letter(self, name: QueueName, word: str) -> DeadLetter:
        """One dead letter, by its id or its offset. Raises MessageNotFound."""
        offset = await self._offset_of(name, word)
        found, _ = await self.dead_letters(name, after_offset=offset - 1, messages_max=1)
        if not found or found[0].offset != offset:
            raise MessageNotFound
        return found[0]

    async def death_reasons(self, name: QueueName) -> list[DeathReason]:
        """The dead letters by reason, the most frequent first. Looks at each of them."""
        sums: dict[str, DeathReason] = {}
        after: int | None = -1
        while after is not None:
            some, after = await self._on(name, partial(self._death_reasons, after))
            for one in some:
                sums[one.reason] = _together(sums.get(one.reason, one), one)
        return sorted(sums.values(), key=lambda one: (-one.count, one.reason))

    async def recent_death_reasons(self, name: QueueName, dead_letters: int) -> list[DeathReason]:
        """As `death_reasons`, for pages that ask again and again about a queue of so many dead letters. Of more than
        DEATH_REASONS_COUNTED_MAX what was counted DEATH_REASONS_KNOWN_MS ago will do."""
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
        """Make dead letters ready again, oldest first, with their counts and their retention started anew.

        Those that died meanwhile are not looked at. Gives how many were redriven.
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
        """One round of a redrive, over dead letters from the first after `after_offset`: how many became ready, and
        the offset to go on after, None at the end."""

        async def redrive(queue: Queue) -> tuple[int, int | None]:
            found = [offset_in(queue.log_id, word) for word in which.words]
            offsets = [offset for offset in found if offset is not None]
            if which.words and not offsets:
                return 0, None
            now = self._clock.script_time()
            return await self._hot.redrive(queue, after_offset, messages_max, which, offsets, now)

        return await self._on(name, redrive)

    async def parked_groups(
        self, name: QueueName, *, after: str = "", groups_max: int = limits.PAGE_ITEMS_DEFAULT
    ) -> list[ParkedGroup]:
        """The groups of which nothing is delivered, by name, from the first after `after`."""
        return await self._on(name, lambda queue: self._hot.parked_groups(queue, after, groups_max))

    async def park_group(self, name: QueueName, group: str, reason: str) -> None:
        """Deliver nothing of a group until it is resumed; what of it is in flight stays so.

        One that is parked keeps its reason. Raises ValidationFailed.
        """
        if not 1 <= len(group) <= limits.GROUP_CHARACTERS_MAX:
            detail = f"1 to {limits.GROUP_CHARACTERS_MAX} characters"
            raise ValidationFailed.at("/group", detail, "out_of_range")
        if len(reason) > limits.REASON_CHARACTERS_MAX:
            raise ValidationFailed.at("/reason", "A reason is at most 1024 characters", "too_long")
        await self._on(
            name, lambda queue: self._hot.park(queue, group, reason, self._clock.script_time())
        )

    async def resume_group(self, name: QueueName, group: str) -> int:
        """Deliver a parked group again, in its order; gives how many messages were parked.

        The message that was to blame has all its attempts once more. Raises GroupNotParked.
        """
        waited = await self._on(name, lambda queue: self._hot.resume(queue, group))
        if waited is None:
            raise GroupNotParked
        return waited


def _together(sum_: DeathReason, more: DeathReason) -> DeathReason:
    if sum_ is more:
        return sum_
    return DeathReason(
        sum_.reason,
        sum_.count + more.count,
        min(sum_.first_died_at_ms, more.first_died_at_ms),
        max(sum_.last_died_at_ms, more.last_died_at_ms),
    )
