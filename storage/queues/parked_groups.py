"""Parked message groups: list, park, resume."""

from storage.domain import limits
from storage.domain.errors import (
    GroupNotParked,
    ValidationFailed,
)
from storage.domain.names import QueueName
from storage.domain.queues.policies import ParkedGroup
from storage.queues.contents import QueueContents


class QueueParkedGroups(QueueContents):
    """Message groups whose delivery is suspended."""

    async def browse(
        self, name: QueueName, *, after: str = "", groups_max: int = limits.PAGE_ITEMS_DEFAULT
    ) -> list[ParkedGroup]:
        """Return the parked groups by name, from the first after `after`."""
        return await self._executor.run(
            name, lambda queue: self._hot.parked_groups(queue, after, groups_max)
        )

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
        await self._executor.run(
            name, lambda queue: self._hot.park(queue, group, reason, self._clock.script_time())
        )

    async def resume(self, name: QueueName, group: str) -> int:
        """Deliver a parked group again, in order; return how many messages were parked.

        The message that caused the parking has all its attempts again. Raises GroupNotParked.
        """
        waited = await self._executor.run(name, lambda queue: self._hot.resume(queue, group))
        if waited is None:
            raise GroupNotParked
        return waited
