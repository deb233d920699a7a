"""A queue as its owner sees it: counts, upkeep, browsing, dead letters. The typed side of those scripts."""

from collections.abc import Sequence

from storage.domain import limits
from storage.domain.batches import decode_one
from storage.domain.clock import ScriptTime
from storage.domain.errors import MessageInFlight, MessageNotFound, PurgeInProgress
from storage.domain.limits import Limits
from storage.domain.messages import (
    BrowsedMessage,
    DeadLetter,
    DeathReason,
    MessageState,
    WhichDead,
    message_id,
)
from storage.domain.names import LogId
from storage.domain.queues import Queue, QueueStats
from storage.redis.answers import checked
from storage.redis.client import Reply
from storage.redis.messages import fifo_word, queue_keys_of, words_of
from storage.redis.pipeline import Argument, Pipeline

_GONE, _OUT = 1, 2  # as change_message.lua has them


class HotQueueStates:
    """The operations of an owner on a queue. Raises LogNotReady where the log must be seen to first."""

    def __init__(self, pipeline: Pipeline, known: Limits) -> None:
        self._pipeline = pipeline
        self._limits = known

    async def tidy(self, queue: Queue, now: ScriptTime) -> tuple[int, int]:
        """One bounded round of upkeep; the pieces of work done, 0 when there is none left, and the messages
        that are on their way to another queue."""
        reply = checked(
            await self._pipeline.write(
                "tidy_queue", queue_keys_of(queue), *self._upkeep(queue, now)
            )
        )
        return reply[1], reply[2]

    async def stats(self, queue: Queue, now: ScriptTime) -> QueueStats:
        """Counts by state as of now."""
        reply = checked(
            await self._pipeline.write(
                "count_messages", queue_keys_of(queue), *self._upkeep(queue, now)
            )
        )
        names = (
            "ready",
            "delayed",
            "in_flight",
            "dead_lettered",
            "sent",
            "deduplicated",
            "acknowledged",
        )
        more = ("expired", "purged", "receives", "bytes_sent")
        moves = zip(("moving", "moved_in", "moved_out"), reply[13:], strict=True)
        oldest = None if reply[12] < 0 else reply[12]
        return QueueStats(
            **dict(zip((*names, *more), reply[1:12], strict=True)),
            **dict(moves),
            oldest_ready_at_ms=oldest,
        )

    async def purge(self, queue: Queue, at_most_every_ms: int, now: ScriptTime) -> int:
        """Drop every message but the dead letters; gives how many. Raises PurgeInProgress."""
        reply = checked(
            await self._pipeline.write("purge_queue", queue_keys_of(queue), now, at_most_every_ms)
        )
        if reply[1] < 0:
            raise PurgeInProgress
        return int(reply[1])

    async def browse(
        self,
        queue: Queue,
        after_offset: int,
        messages_max: int,
        state: MessageState | None,
        now: ScriptTime,
    ) -> tuple[list[BrowsedMessage], int | None]:
        """Messages in the order they were sent in, and the offset to go on after, None at the end."""
        reply = checked(
            await self._pipeline.write(
                "browse_messages",
                queue_keys_of(queue),
                *self._upkeep(queue, now),
                after_offset,
                messages_max,
                state or "",
                limits.BROWSE_LOOKS_MAX,
            )
        )
        last = None if reply[2] < 0 else int(reply[2])
        return [_browsed(queue.log_id, row) for row in reply[3:]], last

    async def change(
        self,
        queue: Queue,
        offset: int,
        delay_ms: int | None,
        priority: int | None,
        now: ScriptTime,
    ) -> None:
        """Change when a waiting message is due, or its priority. Raises MessageNotFound, MessageInFlight."""
        reply = checked(
            await self._pipeline.write(
                "change_message",
                queue_keys_of(queue),
                now,
                offset,
                -1 if delay_ms is None else delay_ms,
                -1 if priority is None else priority,
            )
        )
        if reply[1] == _GONE:
            raise MessageNotFound
        if reply[1] == _OUT:
            raise MessageInFlight

    async def drop(self, queue: Queue, offset: int) -> bool:
        """Drop one message; whether it was there."""
        reply = checked(
            await self._pipeline.write(
                "drop_message", queue_keys_of(queue), fifo_word(queue), offset
            )
        )
        return bool(reply[1])

    async def dead_letters(
        self, queue: Queue, after_offset: int, messages_max: int
    ) -> list[DeadLetter]:
        """Dead letters in the order they were sent in, from the first after `after_offset`."""
        reply = checked(
            await self._pipeline.read(
                "list_dead_letters", queue_keys_of(queue), after_offset, messages_max
            )
        )
        return [_dead(queue.log_id, row) for row in reply[1:]]

    async def redrive(
        self,
        queue: Queue,
        after_offset: int,
        messages_max: int,
        which: WhichDead,
        offsets: Sequence[int],
        now: ScriptTime,
    ) -> tuple[int, int | None]:
        """Make dead letters ready again: how many, and the offset to go on after, None at the end."""
        reply = checked(
            await self._pipeline.write(
                "redrive_dead_letters",
                queue_keys_of(queue),
                now,
                messages_max,
                fifo_word(queue),
                after_offset,
                limits.BROWSE_LOOKS_MAX,
                which.reason,
                which.group,
                *offsets,
            )
        )
        return reply[1], None if reply[2] < 0 else reply[2]

    async def death_reasons(
        self, queue: Queue, after_offset: int
    ) -> tuple[list[DeathReason], int | None]:
        """Some dead letters by reason, and the offset to go on after, None at the end."""
        reply = checked(
            await self._pipeline.read(
                "sum_dead_letters", queue_keys_of(queue), after_offset, limits.BROWSE_LOOKS_MAX
            )
        )
        found = [DeathReason(reason.decode(), *rest) for reason, *rest in reply[2:]]
        return found, None if reply[1] < 0 else reply[1]

    def _upkeep(self, queue: Queue, now: ScriptTime) -> tuple[Argument, ...]:
        spec = queue.spec
        times = (spec.retention_ms, spec.dead_letter_retention_ms)
        return (
            now,
            spec.attempts_max or 0,
            *times,
            self._limits.due_moves_per_call,
            self._limits.expired_per_call,
            fifo_word(queue),
        )


def _browsed(log_id: LogId, row: Reply) -> BrowsedMessage:
    offset, arrival_ms, batch, state, due_ms, receives, failures, crashes, first_ms = row
    record = decode_one(batch)
    words = words_of(record)
    return BrowsedMessage(
        message_id=words.message_id or message_id(log_id, offset),
        offset=offset,
        body=record.data,
        headers=words.headers,
        content_type=words.content_type,
        group=words.group,
        dedup_id=words.dedup_id,
        sent_at_ms=arrival_ms,
        state=MessageState(state.decode()),
        due_at_ms=None if due_ms < 0 else due_ms,
        receives=receives,
        failures=failures,
        crashes=crashes,
        first_received_at_ms=first_ms or None,
    )


def _dead(log_id: LogId, row: Reply) -> DeadLetter:
    offset, arrival_ms, receives, failures, crashes, _, died_ms, reason, batch = row
    record = decode_one(batch)
    words = words_of(record)
    return DeadLetter(
        message_id=words.message_id or message_id(log_id, offset),
        offset=offset,
        body=record.data,
        headers=words.headers,
        content_type=words.content_type,
        group=words.group,
        sent_at_ms=arrival_ms,
        died_at_ms=died_ms,
        reason=reason.decode(),
        receives=receives,
        failures=failures,
        crashes=crashes,
    )
