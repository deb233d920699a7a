"""Sender of copies to one target: each copy once, whoever repeats it."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

import attrs

from consumers.routing.copies import Copy
from storage.bootstrap import Storage
from storage.domain.clock import Clock, SystemClock
from storage.domain.errors import QueueNotFound, ValidationFailed
from storage.domain.names import QueueName, TopicName
from storage.domain.queues.queue import QueueType
from storage.domain.streams.columnar_batch import Columns
from storage.domain.streams.idempotence import NO_WATERMARK, SequencedBatch
from storage.domain.streams.topic_spec import TopicSpec
from storage.domain.topics.route import TopicRoute
from storage.domain.topics.routed_message import TransformFailed
from storage.domain.topics.targets.named_target import TargetName

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
    _clock: Clock = attrs.field(factory=SystemClock)

    async def send(self, copies: Sequence[Copy]) -> None:
        """Add the copies that the target does not have, all or none.

        Raises UnfitCopy, and what the target's append does.
        """
        batch = SequencedBatch(
            [copy.route.producer_ids[copy.source.shard] for copy in copies],
            [copy.source.offset for copy in copies],
        )
        if isinstance(self.target, QueueName):
            queue_type = (await self._storage.catalog.queue(self.target)).spec.type
            now_ms = self._clock.now_ms()
            messages = _rendered(copies, lambda copy: copy.as_message(queue_type, now_ms))
            await self._storage.queues.send_idempotent_batch(self.target, batch, messages)
        elif isinstance(self.target, TopicName):
            topic = (await self._storage.topics.get(self.target)).spec.topic or TopicSpec()
            now_ms = self._clock.now_ms()
            publications = _rendered(copies, lambda copy: copy.as_publication(topic, now_ms))
            await self._storage.topics.publish_idempotent(self.target, batch, publications)
        else:
            records = _rendered(copies, Copy.as_record)
            await self._storage.streams.append_idempotent_columns(
                self.target,
                batch,
                Columns.of([record for record, _ in records]),
                origin=[headers for _, headers in records],
            )

    def expired(self, copies: Sequence[Copy]) -> Sequence[Copy]:
        """Return the copies for a queue whose own time to live is over."""
        if not isinstance(self.target, QueueName):
            return ()
        now_ms = self._clock.now_ms()
        return [copy for copy in copies if copy.source.has_expired(now_ms)]

    async def delivered(self, copies: Sequence[Copy]) -> Sequence[Copy]:
        """Return the copies that a queue has already, or had; none of a queue that is missing."""
        if not isinstance(self.target, QueueName):
            return ()
        producer_ids = [*dict.fromkeys(copy.producer_id for copy in copies)]
        lasts = await last_sequences(self._storage, self.target, producer_ids)
        return [
            one for one in copies if one.source.offset <= lasts.get(one.producer_id, NO_WATERMARK)
        ]

    async def retire(self, producer_ids: Sequence[str]) -> None:
        """Retire producers that have sent everything; does nothing without the target."""
        if isinstance(self.target, QueueName):
            await self._storage.queues.retire_writers(self.target, producer_ids)
        elif isinstance(self.target, TopicName):
            await self._storage.streams.retire_writers(self.target.stream, producer_ids)
        else:
            await self._storage.streams.retire_writers(self.target, producer_ids)


async def last_sequences(
    storage: Storage, name: QueueName, producer_ids: Sequence[str]
) -> Mapping[str, int]:
    """Return the last sequence of each producer in a queue, if all that is below was added."""
    try:
        queue = await storage.catalog.queue(name)
        if queue.partitions and queue.spec.type is QueueType.FIFO:
            return {}  # a part of the last call may be missing
        return await storage.queues.last_sequences(name, producer_ids)
    except QueueNotFound:
        return {}


def _rendered(copies: Sequence[Copy], render: Callable[[Copy], T]) -> list[T]:
    rendered: list[T] = []
    for number, copy in enumerate(copies):
        try:
            rendered.append(render(copy))
        except TransformFailed as failure:
            raise UnfitCopy(number, failure) from None
        except ValidationFailed as error:  # such as an empty record for a topic
            raise UnfitCopy(number, TransformFailed(error.faults[0].detail)) from None
    return rendered


def producers_of(
    routes: Iterable[TopicRoute], shards: Collection[int]
) -> dict[TargetName, list[str]]:
    """Return the producers of routes for shards, by target and dead-letter queue."""
    ids: dict[TargetName, list[str]] = {}
    for route in routes:
        if route.spec.is_shadow:
            continue
        for branch in route.branches:
            ids.setdefault(branch.target, []).extend(route.producer_ids[shard] for shard in shards)
            if (queue := route.dead_letter_queue) is not None:
                dead = [route.dead_producer_id(shard, branch.member) for shard in shards]
                ids.setdefault(queue, []).extend(dead)
    return ids
