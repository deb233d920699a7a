"""Sender of copies to one target: each copy once, whoever repeats it."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

import attrs

from consumers.routing.copies import COPY_HEADERS, Copy
from storage.bootstrap import Storage
from storage.domain.names import QueueName, TopicName
from storage.domain.streams.idempotence import SequencedBatch
from storage.domain.topics.route import TargetName, TopicRoute
from storage.domain.topics.routed_message import TransformFailed

T = TypeVar("T")


class UnfitCopy(Exception):
    """A route makes no copy of a message: its number in the batch, and why."""

    def __init__(self, number: int, failure: TransformFailed) -> None:
        super().__init__(number, failure.detail)
        self.number = number
        self.reason = failure.reason
        self.detail = failure.detail


@attrs.define(eq=False)
class TargetSender:
    """Idempotent appends to a target, by a producer for each shard and route."""

    _storage: Storage
    target: TargetName

    async def send(self, copies: Sequence[Copy]) -> None:
        """Add the copies that the target does not have, all or none.

        Raises UnfitCopy, and what the target's append does.
        """
        batch = SequencedBatch([one.producer_id for one in copies], [one.offset for one in copies])
        if isinstance(self.target, QueueName):
            queue_type = (await self._storage.catalog.queue(self.target)).spec.type
            messages = _rendered(copies, lambda copy: copy.as_message(queue_type))
            await self._storage.queues.send_idempotent_batch(self.target, batch, messages)
        elif isinstance(self.target, TopicName):
            publications = _rendered(copies, Copy.as_publication)
            await self._storage.topics.publish_idempotent(self.target, batch, publications)
        else:
            records = _rendered(copies, Copy.as_record)
            await self._storage.streams.append_idempotent_batch(
                self.target, batch, records, own=COPY_HEADERS
            )

    async def retire(self, producer_ids: Sequence[str]) -> None:
        """Retire producers that have sent everything; does nothing without the target."""
        if isinstance(self.target, QueueName):
            await self._storage.queues.retire_writers(self.target, producer_ids)
        elif isinstance(self.target, TopicName):
            await self._storage.streams.retire_writers(self.target.stream, producer_ids)
        else:
            await self._storage.streams.retire_writers(self.target, producer_ids)


def _rendered(copies: Sequence[Copy], render: Callable[[Copy], T]) -> list[T]:
    rendered: list[T] = []
    for number, copy in enumerate(copies):
        try:
            rendered.append(render(copy))
        except TransformFailed as failure:
            raise UnfitCopy(number, failure) from None
    return rendered


def producers_of(
    routes: Iterable[TopicRoute], shards: Collection[int]
) -> dict[TargetName, list[str]]:
    """Return the producers of routes for shards, by target and dead-letter queue."""
    ids: dict[TargetName, list[str]] = {}
    for route in routes:
        if route.spec.is_shadow:
            continue
        ids.setdefault(route.target, []).extend(map(route.producer_id, shards))
        if (queue := route.dead_letter_queue) is not None:
            ids.setdefault(queue, []).extend(map(route.dead_producer_id, shards))
    return ids
