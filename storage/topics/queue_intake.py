"""Intake of a queue: transfer of its messages to the topic of its routes, each once.

    ready ─▶ moving, with a number ─▶ append, the number being the sequence of a monotonic producer ─▶ cleared
                                  └── no route takes it: dead letter of the queue; there is no live route: ready again

Several processes may transfer the same messages. What the topic has of them, its log says; what returns to the queue is decided
under the lock of the route table, above what the topic has. No earlier version of the table can append them then, since the log has
the token of this one, and a later version begins behind the lock (ADR 0101).
"""

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

import attrs

from storage.catalog.catalog import Catalog
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import FenceMismatch, QueueNotFound, TopicNotFound
from storage.domain.log.address import LogAddress
from storage.domain.log.record_batch import (
    CONTENT_TYPE,
    DEDUP_ID,
    RESERVED,
    Headers,
    subject_of,
)
from storage.domain.names import QueueName, TopicName
from storage.domain.queues.queue import Queue
from storage.domain.requests.token import REPLY_TO
from storage.domain.streams.idempotence import SequencedBatch
from storage.domain.streams.stream import Stream
from storage.domain.topics.topic import NewPublication, PublicationOptions, hops_of
from storage.hot_store.log_store import WatermarkStore
from storage.hot_store.queues.transfers import Departure, Departures, Moving, TransferStore
from storage.hot_store.wakeups import Wakeups
from storage.log.provisioner import LogProvisioner
from storage.log.queue_executor import QueueExecutor
from storage.postgres.repositories.routes import RouteRows
from storage.streams.engine import Streams
from storage.topics.engine import Topics
from storage.topics.route_table import RouteTable, RouteTables

_BATCH, _BYTES = limits.QUEUE_ROUTE_BATCH_MESSAGES, limits.QUEUE_ROUTE_BATCH_BYTES
UNROUTABLE = "unroutable"
"""Reason of a dead letter that no route took."""

FAN_OUT_TOO_LARGE = "fan_out_too_large"
"""Reason of a dead letter that too many routes took, for its size."""

NO_LIVE_ROUTE = "no_live_route"
"""Reason why a message is ready in its queue again."""


class _Decided(NamedTuple):
    """Message in transfer, and the numbers of the routes that take it, or why it is refused."""

    moving: Moving
    publication: NewPublication
    numbers: Sequence[int]
    refusal: str


@attrs.define(eq=False, slots=False, kw_only=True)
class QueueIntake:
    """Intake of all queues that have routes."""

    _hot: TransferStore
    _executor: QueueExecutor
    _topics: Topics
    _tables: RouteTables
    _rows: RouteRows
    _catalog: Catalog
    _streams: Streams
    _watermarks: WatermarkStore
    _provisioner: LogProvisioner
    _wakeups: Wakeups
    _clock: Clock

    async def take(self, topic: Stream, wait_ms: int) -> int:
        """Transfer ready messages of each partition; return how many departed.

        `topic`: as the catalog has it now. Without a ready message it waits for one; without a live route, or while the queue is
        paused, nothing departs. Raises TopicNotFound, and QueueNotFound also for another queue of the name.
        """
        queue, table = await self._queue(topic), await self._table(topic)
        if queue.spec.paused or not table.has_live_routes:
            await asyncio.sleep(min(wait_ms, limits.ROUTER_RELOAD_MS) / limits.SECOND_MS)
            return 0
        log_ids, version = tuple(log.log_id for log in queue.logs), table.version
        with self._wakeups.waiting(log_ids, alone=True) as waiter:
            departures = [await self._depart(log) for log in queue.logs]
            count = sum(len(one.routed.messages) for one in departures)
            for log, departure in zip(queue.logs, departures, strict=True):
                if departure.routed.messages:
                    waiter.satisfied = True
                    await self._publish(queue, log, departure.routed, version)
            if not count:
                await waiter.wait(min([wait_ms, *_due_in_ms(departures)]) / limits.SECOND_MS)
        return count

    async def _queue(self, topic: Stream) -> Queue:
        """Return the queue of the topic, not another one that has its name since."""
        name, spec = topic.name.topic.queue, topic.spec.topic
        if name is None or spec is None:
            raise QueueNotFound
        queue = await self._catalog.queue(name)
        if queue.log_id != spec.queue_id:
            raise QueueNotFound
        return queue

    async def complete(self, name: QueueName) -> None:
        """Transfer what has departed; that of a deleted topic is ready again.

        Raises QueueNotFound.
        """
        queue = await self._executor.resolve(name)
        for log in queue.logs:
            while await self._complete(queue, log):
                continue

    async def _depart(self, log: Queue) -> Departure:
        now = self._clock.script_time()
        depart = partial(self._hot.depart_routed, messages_max=_BATCH, bytes_max=_BYTES, now=now)
        return await self._executor.run(log.name, depart, log)

    async def _complete(self, queue: Queue, log: Queue) -> bool:
        """Transfer the first messages of a partition; return whether there may be more."""
        routed = await self._routed(log)
        if routed.messages:
            await self._publish(queue, log, routed, None)
        return len(routed.messages) == _BATCH

    async def _publish(
        self, queue: Queue, log: Queue, routed: Departures, version: int | None
    ) -> None:
        """Transfer messages, which were read behind a version of the table, or None."""
        name = TopicName.of_queue(queue.name)
        try:
            topic = await self._topics.get(name)
            if topic.spec.topic is None or topic.spec.topic.queue_id != queue.log_id:
                raise TopicNotFound
            transfer = partial(self._transfer, topic, log, routed, version)
            await self._topics.append_fenced(name, topic, transfer)
        except TopicNotFound:
            await self._put_back(log, routed.messages)

    async def _transfer(
        self,
        topic: Stream,
        log: Queue,
        routed: Departures,
        version: int | None,
        table: RouteTable,
    ) -> None:
        """Append messages that the table's routes take, and return the others to the queue.

        They are read again behind another table than that of `version`: what a former one has returned is not among them. Raises
        FenceMismatch for a table that is not the present one.
        """
        if table.version != version:
            routed = await self._routed(log)
        decided = self._decide(topic, table, routed.messages)
        fence, decided_by = table.fence, table.version
        producer = routed.producer_id(log.log_id)
        if any(one.refusal for one in decided):
            await self._return(topic, log, producer, decided, decided_by)
        accepted = [one for one in decided if not one.refusal]
        if accepted:
            await self._streams.append_idempotent_batch(
                topic.name,
                SequencedBatch.of(producer, [one.moving.position for one in accepted]),
                [one.publication.record(one.numbers) for one in accepted],
                publishes=True,
                stream_id=topic.stream_id,
                fence=fence,
            )
        await self._clear(log, routed.messages, put_back=False)

    def _decide(
        self, topic: Stream, table: RouteTable, messages: Sequence[Moving]
    ) -> list[_Decided]:
        name, now_ms = topic.name.topic, self._clock.now_ms()
        refuses = topic.spec.topic is not None and topic.spec.topic.refuses_unmatched
        decided = []
        for moving in messages:
            publication = _publication(moving, now_ms)
            numbers = table.numbers_for(publication.document(name))
            live, refusal = len(table.live(numbers)), ""
            if not table.has_live_routes:
                refusal = NO_LIVE_ROUTE
            elif not live and refuses:
                refusal = UNROUTABLE
            elif live * len(publication.body) > limits.FAN_OUT_BYTES_MAX:
                refusal = FAN_OUT_TOO_LARGE
            decided.append(_Decided(moving, publication, numbers, refusal))
        return decided

    async def _return(
        self,
        topic: Stream,
        log: Queue,
        producer: str,
        decided: Sequence[_Decided],
        version: int,
    ) -> None:
        """Return refused messages that the topic does not have; its routes are locked meanwhile.

        Raises FenceMismatch if they have another version than the one that decided.
        """
        async with self._rows.repairing(topic.name.topic, topic.stream_id) as routes:
            if routes is None:
                raise TopicNotFound
            if routes.version != version:
                raise FenceMismatch
            last = await self._last(topic, producer)
            refused = [one for one in decided if one.refusal and one.moving.position > last]
            returning = [one.moving for one in refused if one.refusal == NO_LIVE_ROUTE]
            await self._put_back(log, returning)
            for reason in (UNROUTABLE, FAN_OUT_TOO_LARGE):
                positions = [one.moving.position for one in refused if one.refusal == reason]
                if positions:
                    await self._reject(log, positions, reason)

    async def _last(self, topic: Stream, producer: str) -> int:
        """Return the last number of a queue's message that the topic has."""
        log = LogAddress(topic.name.namespace, topic.shards[0].log_id)
        get = partial(self._watermarks.get, log, [producer])
        return (await self._provisioner.with_repair(log, get)).lasts[0]

    async def _table(self, topic: Stream) -> RouteTable:
        table = self._tables.cached(topic.stream_id)
        if table is None or table.version < topic.routes_version:
            table = await self._tables.refresh(topic.name.topic, topic.stream_id)
        return table

    async def _routed(self, log: Queue) -> Departures:
        return await self._executor.run(log.name, lambda log: self._hot.routed(log, _BATCH), log)

    async def _put_back(self, log: Queue, messages: Sequence[Moving]) -> None:
        await self._clear(log, messages, put_back=True)

    async def _clear(self, log: Queue, messages: Sequence[Moving], *, put_back: bool) -> None:
        positions = [message.position for message in messages]
        if positions:
            now = self._clock.script_time()
            clear = partial(self._hot.clear, positions=positions, now=now, put_back=put_back)
            await self._executor.run(log.name, clear, log)

    async def _reject(self, log: Queue, positions: Sequence[int], reason: str) -> None:
        now = self._clock.script_time()
        reject = partial(self._hot.reject, positions=positions, reason=reason, now=now)
        await self._executor.run(log.name, reject, log)


def _due_in_ms(departed: Iterable[Departure]) -> list[int]:
    """Return after which times a lease or a delay ends in partitions."""
    return [max(0, one.next_due_ms - one.now_ms) for one in departed if one.next_due_ms >= 0]


def _publication(moving: Moving, now_ms: int) -> NewPublication:
    """Return a message of a queue as its routes take it.

    Its key is the message group, and its subject is the one that it was published under, if it is a copy itself. An empty message,
    which a topic does not have, becomes a line feed.
    """
    record = moving.record
    own = {name: value for name, _, value in record.headers if name[0] == RESERVED}
    left_ms = max(1, moving.expires_at_ms - now_ms) if moving.expires_at_ms else 0
    options = PublicationOptions(
        dedup_id=own.get(DEDUP_ID, b"").decode(), ttl_ms=left_ms, priority=moving.priority
    )
    return NewPublication(
        record.data or b"\n",
        subject_of(record.headers),
        moving.group,
        _visible(record.headers),
        hops_of(record.headers),
        own.get(REPLY_TO, b"").decode(),
        options,
    )


def _visible(headers: Headers) -> Headers:
    return tuple(one for one in headers if one[0] == CONTENT_TYPE or one[0][0] != RESERVED)
