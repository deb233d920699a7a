"""Parked message groups: list, park, resume."""

from collections.abc import Awaitable, Callable
from functools import partial
from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import TypeVar

from msgspec.structs import replace

from storage.domain import limits
from storage.domain.errors import (
    GroupNotParked,
    ValidationFailed,
)
from storage.domain.names import QueueName
from storage.domain.queues.partitions import partition_of
from storage.domain.queues.policies import ParkedGroup
from storage.domain.queues.queue import Queue
from storage.queues.contents import QueueContents

T = TypeVar("T")


class QueueParkedGroups(QueueContents):
    """Message groups whose delivery is suspended."""

    async def browse(
        self, name: QueueName, *, after: str = "", groups_max: int = limits.PAGE_ITEMS_DEFAULT
    ) -> list[ParkedGroup]:
        """Return the parked groups by name, from the first after `after`."""
        read = partial(self._parked_in, after, groups_max)
        pages = await self._executor.each(name, read)
        return list(islice(merge(*pages, key=attrgetter("group")), groups_max))

    async def _parked_in(self, after: str, groups_max: int, log: Queue) -> list[ParkedGroup]:
        groups = await self._hot.parked_groups(log, after, groups_max)
        return [_in_queue(group, log.first_offset) for group in groups] if log.partition else groups

    async def park(self, name: QueueName, group: str, reason: str) -> None:
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
        await self._on_group(
            name, group, lambda log: self._hot.park(log, group, reason, self._clock.script_time())
        )

    async def resume(self, name: QueueName, group: str) -> int:
        """Deliver a parked group again, in order; return how many messages were parked.

        The message that caused the parking has all its attempts again. Raises GroupNotParked.
        """
        waited = await self._on_group(name, group, lambda log: self._hot.resume(log, group))
        if waited is None:
            raise GroupNotParked
        return waited

    async def _on_group(
        self, name: QueueName, group: str, verb: Callable[[Queue], Awaitable[T]]
    ) -> T:
        """Run a verb on the partition of a group."""

        async def run(queue: Queue) -> T:
            if not queue.partitions:
                return await verb(queue)
            return await self._executor.run(name, verb, partition_of(queue, group))

        return await self._executor.run(name, run)


def _in_queue(group: ParkedGroup, first_offset: int) -> ParkedGroup:
    """Return a partition's group with the offsets of the queue."""
    poison, first = group.poison_offset, group.first_offset
    return replace(
        group,
        poison_offset=None if poison is None else first_offset + poison,
        first_offset=None if first is None else first_offset + first,
    )
