"""Delivery of one shard of a group: records one after another, with commits.

    read ──▶ post ──2xx──▶ next, and a commit every second or at the end of what was read
               │
               └─ failed ──▶ the same again after a while ──the last time──▶ block, or a dead letter and next

A killed deliverer's successor begins at the last commit: records delivered since are delivered again, under their own ids.
"""

import asyncio
from collections import deque

from consumers.webhooks.dead_letter import dead_letter_of
from consumers.webhooks.endpoint import Endpoint, EndpointUnavailable
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.errors import MillstreamError, ShardNotFound
from storage.domain.groups.group import Commit, CommitResult
from storage.domain.names import GroupName, QueueName
from storage.domain.queues.dead_letter_origin import DeadLetterOrigin
from storage.domain.streams.stream import Gap, LogRecord, ShardRead, Stream
from storage.domain.webhooks import (
    Attempt,
    DeliveryLogEntry,
    DeliveryStatus,
    Event,
    OnFailure,
    PayloadLocation,
    record_event_id,
)
from storage.streams.record_source import RecordSource
from storage.webhooks.deliveries import without_own

KIND = "stream.record"


class MemberGeneration:
    """The membership by which a shard is read: the group's member and its latest generation.

    While the group is paused, nothing is read or delivered.
    """

    def __init__(self, group: GroupName, member_id: str) -> None:
        self.group = group
        self.member_id = member_id
        self.generation = 0
        self.paused = False


class ShardSource:
    """Delivery of one shard to one receiver.

    `start` is the offset at which to begin; None: the oldest record.
    """

    def __init__(
        self,
        *,
        endpoint: Endpoint,
        storage: Storage,
        membership: MemberGeneration,
        stream: Stream,
        shard: int,
        start: int | None,
    ) -> None:
        self._endpoint = endpoint
        self._storage = storage
        self._membership = membership
        self._stream = stream
        self._source = RecordSource(
            storage.record_reader, stream.name, stream.stream_id, endpoint.spec.record_filter
        )
        self._shard = shard
        self._position = start
        self._committed = start
        self._committed_at_ms = endpoint.clock.now_ms()
        self._records: deque[LogRecord] = deque()
        self._next_offset = start
        self._ended = False
        self._failures: int | None = None
        self._due_ms = 0
        self._checked_at_ms = 0
        self.is_done = False
        self.is_reading = False
        self.stopping = False

    async def run(self) -> None:
        """Deliver until the shard has ended or is to be given up, checked between records.

        Raises StaleGeneration, MemberUnknown and others of the group's errors where another member has the shard.
        """
        while not self.is_done and not self.stopping:
            wait_ms = await self.step(wait_ms=limits.WAIT_MS_MAX // 4)
            if wait_ms:
                await asyncio.sleep(min(wait_ms, limits.WEBHOOK_COMMIT_MS) / limits.SECOND_MS)
        if not self.is_done:
            await self._commit()

    async def step(self, wait_ms: int = 0) -> int:
        """Read, or try to deliver the next record, once; return the ms until the next step."""
        if self._membership.paused:
            await self._commit_in_time()
            return limits.WEBHOOK_COMMIT_MS
        if not self._records:
            return await self._read(wait_ms)
        if (later_ms := self._due_ms - self._endpoint.clock.now_ms()) > 0:
            return later_ms if not await self._was_resent() else 0
        if (shut_ms := self._endpoint.wait_ms) is None or shut_ms > 0:
            await self._commit_in_time()
            return limits.WEBHOOK_COMMIT_MS if shut_ms is None else shut_ms
        await self._deliver(self._records[0])
        await self._commit_in_time()
        return 0

    # Reading

    async def _read(self, wait_ms: int) -> int:
        await self._commit()
        if self._ended:
            self.is_done = True
            return 0
        if self.stopping:
            return 0
        self.is_reading = True
        try:
            read = await self._source.read(
                self._shard,
                self._position,
                records_max=limits.WEBHOOK_READ_RECORDS,
                bytes_max=limits.WEBHOOK_READ_BYTES,
                wait_ms=wait_ms,
            )
        except ShardNotFound:  # its group will report that soon
            return limits.WEBHOOK_SOURCE_RETRY_MS
        except MillstreamError as error:
            self._endpoint.report_source_error(error.detail)
            return limits.WEBHOOK_SOURCE_RETRY_MS
        finally:
            self.is_reading = False
        if read.gap is not None:
            await self._log_gap(read.gap)
        self._take(read)
        return 0 if read.records or read.ended or wait_ms else limits.WEBHOOK_COMMIT_MS

    def _take(self, read: ShardRead) -> None:
        """Take the records that are to be delivered, and pass over those before the first one."""
        selects = self._source.selects
        self._records.extend(one for one in read.records if selects(self._shard, one))
        self._next_offset = read.next_offset
        self._ended = read.ended
        self._position = self._records[0].offset if self._records else read.next_offset

    async def _log_gap(self, gap: Gap) -> None:
        """Log a gap, so that no record is skipped silently."""
        now_ms = self._endpoint.clock.now_ms()
        detail = f"Records {gap.first} to {gap.next - 1} of shard {self._shard} were unavailable for delivery: {gap.reason}."
        self._endpoint.report_source_error(detail)
        await self._endpoint.log(
            DeliveryLogEntry(
                event_id=f"{self._stream.stream_id}-{self._shard}-gap-{gap.first}",
                status=DeliveryStatus.GAP,
                attempts=0,
                attempt=None,
                at_ms=now_ms,
                location=PayloadLocation(gap.first, self._shard),
                event_at_ms=now_ms,
            )
        )

    # Delivering

    async def _deliver(self, record: LogRecord) -> None:
        event = self._event(record)
        failures = await self._failures_of(event.event_id)
        if self._due_ms > self._endpoint.clock.now_ms():
            return  # as an earlier deliverer had decided
        try:
            attempt = await self._endpoint.attempt(event, failures + 1)
        except EndpointUnavailable:
            return
        if attempt.succeeded:
            await self._note(event, record, attempt, DeliveryStatus.DELIVERED)
            self._pass(record)
        else:
            await self._failed(event, record, attempt, failures + 1)

    async def _failures_of(self, event_id: str) -> int:
        """Return how often the record has failed; for the first record, the log may have a count."""
        if self._failures is not None:
            return self._failures
        self._failures = 0
        delivery = await self._storage.deliveries.find(self._endpoint.webhook, event_id)
        since_ms = self._endpoint.webhook.changed_at_ms
        if (
            delivery is not None
            and delivery.status is DeliveryStatus.RETRYING
            and delivery.last_at_ms >= since_ms  # the owner's changes since may have helped
        ):
            self._failures, self._due_ms = delivery.attempts, delivery.next_at_ms or 0
        return self._failures

    async def _was_resent(self) -> bool:
        """Return whether the record was resent on request, successfully, while it waits."""
        now_ms = self._endpoint.clock.now_ms()
        if now_ms - self._checked_at_ms < limits.WEBHOOK_SOURCE_RETRY_MS:
            return False
        self._checked_at_ms = now_ms
        record = self._records[0]
        delivery = await self._storage.deliveries.find(
            self._endpoint.webhook, self._event(record).event_id
        )
        if delivery is None or delivery.status is not DeliveryStatus.DELIVERED:
            return False
        self._pass(record)
        return True

    async def _failed(
        self, event: Event, record: LogRecord, attempt: Attempt, failures: int
    ) -> None:
        spec = self._endpoint.spec
        delay_ms = spec.retry_delay_ms(failures, self._endpoint.chance())
        if delay_ms is None and spec.on_failure is OnFailure.DEAD_LETTER:
            if await self._dead_letter(event, record, attempt, failures):
                await self._note(event, record, attempt, DeliveryStatus.FAILED)
                self._pass(record)
                return
            delay_ms = limits.WEBHOOK_SOURCE_RETRY_MS
        elif delay_ms is None:
            last_ms = spec.retry_delays_ms[-1] if spec.retry_delays_ms else 0
            delay_ms = max(last_ms, limits.WEBHOOK_SOURCE_RETRY_MS)
            self._endpoint.blocked(self._shard, f"offset {record.offset}: {attempt.error}")
        self._failures = failures
        self._due_ms = self._endpoint.clock.now_ms() + max(delay_ms, attempt.wait_ms or 0)
        await self._note(event, record, attempt, DeliveryStatus.RETRYING, self._due_ms)
        await self._commit()  # a successor begins with this record

    async def _dead_letter(
        self, event: Event, record: LogRecord, attempt: Attempt, failures: int
    ) -> bool:
        """Send the record to the dead-letter queue; return whether the queue accepted it."""
        assert self._endpoint.spec.dead_letter_queue is not None
        name = QueueName(self._endpoint.spec.dead_letter_queue, self._membership.group.namespace)
        key = f"{self._endpoint.webhook.webhook_id}:{event.event_id}"  # a repeat adds nothing
        try:
            queue = await self._storage.catalog.queue(name)
            message = dead_letter_of(event, self._origin(attempt, failures), queue.spec.type)
            await self._storage.queues.send(name, [message], idempotency_key=key)
        except MillstreamError as error:
            self._endpoint.blocked(self._shard, f"offset {record.offset}: {error.detail}")
            return False
        return True

    def _origin(self, attempt: Attempt, failures: int) -> DeadLetterOrigin:
        return DeadLetterOrigin(
            source=str(self._endpoint.spec.source),
            reason=attempt.error,
            died_at_ms=self._endpoint.clock.now_ms(),
            failures=failures,
            crash_count=0,
            details=attempt.response_head,
        )

    def _pass(self, record: LogRecord) -> None:
        """Advance past a record that is done."""
        self._records.popleft()
        self._position = record.offset + 1 if self._records else self._next_offset
        self._failures, self._due_ms = 0, 0
        self._endpoint.blocked(self._shard, None)

    def _event(self, record: LogRecord) -> Event:
        headers, content_type = without_own(record.record.headers)
        return Event(
            event_id=record_event_id(self._stream.stream_id, self._shard, record.offset),
            kind=KIND,
            source=str(self._endpoint.spec.source),
            payload=record.record.data,
            content_type=content_type,
            headers=headers,
            at_ms=record.arrival_ms,
            location=PayloadLocation(record.offset, self._shard),
            key=record.record.key,
            stream=self._stream.name.name,
        )

    async def _note(
        self,
        event: Event,
        record: LogRecord,
        attempt: Attempt,
        status: DeliveryStatus,
        next_at_ms: int | None = None,
    ) -> None:
        await self._endpoint.log(
            DeliveryLogEntry(
                event_id=event.event_id,
                status=status,
                attempts=1,
                attempt=attempt,
                at_ms=attempt.at_ms,
                next_at_ms=next_at_ms,
                location=event.location,
                event_at_ms=record.arrival_ms,
                key=event.key,
            )
        )

    # Committing

    async def _commit_in_time(self) -> None:
        now_ms = self._endpoint.clock.now_ms()
        if now_ms - self._committed_at_ms >= limits.WEBHOOK_COMMIT_MS:
            await self._commit()

    async def _commit(self) -> None:
        """Commit the records that are done, unless they are committed.

        Raises the commit's error.
        """
        done = self._position
        if done is None or (done == self._committed and not self._ended):
            return
        mine = self._membership
        commit = Commit(self._shard, done, mine.member_id, mine.generation)
        [answer] = await self._storage.groups.commit(mine.group, [commit])
        _raise(answer)
        self._committed, self._committed_at_ms = done, self._endpoint.clock.now_ms()


def _raise(answer: CommitResult) -> None:
    if isinstance(answer, MillstreamError):
        raise answer
