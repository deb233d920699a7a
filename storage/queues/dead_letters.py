"""Dead letters that a queue keeps itself: browse, count by reason, redrive."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import attrs

from storage.catalog.catalog import Catalog
from storage.concurrency.ttl_cache import TtlCache
from storage.domain import limits
from storage.domain.errors import (
    MessageNotFound,
)
from storage.domain.names import QueueName
from storage.domain.queues.message import (
    DeadLetter,
    DeathReason,
    MessageContent,
    WhichDead,
)
from storage.domain.queues.queue import Queue
from storage.hot_store.queues.contents import BrowsePage, DeadSelection
from storage.queues.contents import QueueContents
from storage.queues.message_filter import SelectsMessage, matching

_ALL_DEAD = WhichDead()

M = TypeVar("M", bound=MessageContent)


@attrs.define(eq=False, slots=False)
class QueueDeadLetters(QueueContents):
    """Dead letters of a deployment's queues."""

    _catalog: Catalog
    _recent_reasons: TtlCache[list[DeathReason]] = attrs.field(init=False)

    @_recent_reasons.default
    def _new_cache(self) -> TtlCache[list[DeathReason]]:
        return TtlCache(limits.DEATH_REASONS_TTL_MS, self._clock)

    async def browse(
        self,
        name: QueueName,
        *,
        after_offset: int = -1,
        messages_max: int = limits.PAGE_ITEMS_DEFAULT,
        selects: SelectsMessage | None = None,
    ) -> tuple[list[DeadLetter], int | None]:
        """Return the queue's dead letters in the order sent, and the offset to continue after.

        That offset is None at the end. A page ends early where BROWSE_BYTES_MAX is reached; with a filter, a call looks at
        BROWSE_SCANNED_MAX dead letters at most.
        """
        scanned_max = limits.BROWSE_SCANNED_MAX if selects else messages_max
        page = BrowsePage(after_offset, scanned_max)
        scanned = await self._page(name, page, self._hot.dead_letters)
        return matching(scanned, selects, messages_max) if selects else scanned

    async def get(self, name: QueueName, reference: str) -> DeadLetter:
        """Return one dead letter by its id or offset.

        Raises MessageNotFound.
        """
        return await find_message(self._catalog, name, reference, self.browse)

    async def reasons(self, name: QueueName) -> list[DeathReason]:
        """Count the dead letters by reason, the most frequent first.

        Reads each of them.
        """
        sums: dict[str, DeathReason] = {}
        after: int | None = -1
        while after is not None:
            reasons, after = await self._executor.page(name, after, self._hot.death_reasons)
            for entry in reasons:
                sums[entry.reason] = _merged(sums.get(entry.reason, entry), entry)
        return sorted(sums.values(), key=lambda entry: (-entry.count, entry.reason))

    async def recent_reasons(self, name: QueueName, dead_letters: int) -> list[DeathReason]:
        """Count the dead letters by reason, with caching, for pages that poll.

        `dead_letters` is the queue's number of them. If that is more than DEATH_REASONS_COUNTED_MAX, the counts may be
        DEATH_REASONS_TTL_MS old.
        """
        if dead_letters <= limits.DEATH_REASONS_COUNTED_MAX:
            return await self.reasons(name)
        return await self._recent_reasons.get(name, partial(self.reasons, name))

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
            count, last = await self.redrive_page(name, which, after, most)
            redriven += count
            if last is None:
                break
            after = last
        return redriven

    async def redrive_page(
        self, name: QueueName, which: WhichDead, after_offset: int, messages_max: int
    ) -> tuple[int, int | None]:
        """Redrive one round of dead letters, from the first after `after_offset`.

        Returns how many became ready, and the offset to continue after, None at the end.
        """

        queue = await self._catalog.queue(name)
        offsets = [queue.offset_in(word) for word in which.references]

        async def redrive(log: Queue, after: int) -> tuple[int, int | None]:
            own = [place for offset in offsets if (place := log.own_offset(offset)) is not None]
            if which.references and not own:
                return 0, None
            page = BrowsePage(after, messages_max)
            selection = DeadSelection(which.reason, which.group, own)
            return await self._hot.redrive(log, page, selection, self._clock.script_time())

        return await self._executor.page(name, after_offset, redrive)


async def offset_of(catalog: Catalog, name: QueueName, reference: str) -> int:
    """Return the offset of a message that is given by its id or offset.

    Raises MessageNotFound, QueueNotFound.
    """
    offset = (await catalog.queue(name)).offset_in(reference)
    if offset is None:
        raise MessageNotFound
    return offset


async def find_message(
    catalog: Catalog,
    name: QueueName,
    reference: str,
    browse: Callable[..., Awaitable[tuple[list[M], int | None]]],
) -> M:
    """Return the message of an id or offset from those that `browse` returns.

    Raises MessageNotFound, QueueNotFound.
    """
    offset = await offset_of(catalog, name, reference)
    messages, _ = await browse(name, after_offset=offset - 1, messages_max=1)
    if not messages or messages[0].offset != offset:
        raise MessageNotFound
    return messages[0]


def _merged(sum_: DeathReason, other: DeathReason) -> DeathReason:
    if sum_ is other:
        return sum_
    return DeathReason(
        sum_.reason,
        sum_.count + other.count,
        min(sum_.first_died_at_ms, other.first_died_at_ms),
        max(sum_.last_died_at_ms, other.last_died_at_ms),
    )
