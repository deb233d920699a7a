"""Inspection of a queue's contents by its owner: typed wrappers of those scripts.

Messages, dead letters and parked groups.
"""

from storage.domain import limits
from storage.domain.clock import ScriptTime
from storage.domain.errors import MessageInFlight, MessageNotFound
from storage.domain.log.record_batch import Headers, Record, decode_one, encode_batch
from storage.domain.names import LogId
from storage.domain.queues.dead_letter_origin import origin_of
from storage.domain.queues.history import MessageEvent, MessageEventType, Noted
from storage.domain.queues.message import (
    BrowsedMessage,
    DeadLetter,
    DeathReason,
    MessageState,
    message_id,
)
from storage.domain.queues.policies import ParkedGroup
from storage.domain.queues.queue import Queue
from storage.domain.trace_context import with_noted
from storage.hot_store.queues.contents import (
    BrowsePage,
    DeadSelection,
    QueueContentStore,
    RedelayCursor,
)
from storage.redis.queues.queue_scripts import QueueScripts
from storage.redis.queues.script_args import ParsedHeaders, fifo_arg, parse_headers
from storage.redis.queues.stats import upkeep_arguments
from storage.redis.transport.client import Reply

_GONE, _OUT = 1, 2  # the results of change_message.lua and replace_message.lua
_REDELAY_PAGE = 1_000  # offsets that one call of redelay_messages.lua looks at


class RedisQueueContentStore(QueueScripts, QueueContentStore):
    """Content verbs as one script each."""

    async def browse(
        self, queue: Queue, page: BrowsePage, state: MessageState | None, now: ScriptTime
    ) -> tuple[list[BrowsedMessage], int | None]:
        reply = await self._write(
            "browse_messages",
            queue,
            *upkeep_arguments(queue, self._limits, now),
            *page,
            state or "",
            limits.BROWSE_SCANNED_MAX,
            limits.BROWSE_BYTES_MAX,
        )
        return [_browsed(queue.log_id, row) for row in reply[3:]], _more(reply[2])

    async def change(
        self, queue: Queue, offset: int, delay_ms: int | None, priority: int | None, now: ScriptTime
    ) -> None:
        reply = await self._write(
            "change_message",
            queue,
            now,
            offset,
            -1 if delay_ms is None else delay_ms,
            -1 if priority is None else priority,
        )
        _check_result(reply[1])

    async def redelay(
        self, queue: Queue, cursor: RedelayCursor, before_ms: int, now: ScriptTime
    ) -> RedelayCursor | None:
        reply = await self._write(
            "redelay_messages",
            queue,
            now,
            cursor.offset,
            _REDELAY_PAGE,
            before_ms,
            queue.spec.delay_ms,
            cursor.due_ms,
        )
        return None if reply[1] < 0 else RedelayCursor(reply[1], reply[2])

    async def record(self, queue: Queue, offset: int) -> Record:
        reply = await self._read("find_batch", queue, offset)
        if not reply[1]:
            raise MessageNotFound
        return decode_one(reply[1])

    async def replace(self, queue: Queue, offset: int, record: Record, now: ScriptTime) -> None:
        reply = await self._write("replace_message", queue, offset, encode_batch((record,)), now)
        _check_result(reply[1])

    async def drop(self, queue: Queue, offset: int, now: ScriptTime) -> bool:
        reply = await self._write("delete_message", queue, fifo_arg(queue), offset, now)
        return bool(reply[1])

    async def history(
        self, queue: Queue, offset: int | None, after: str
    ) -> tuple[list[Noted], str]:
        reply = await self._read(
            "read_history",
            queue,
            "" if offset is None else offset,
            after,
            limits.HISTORY_SCANNED_MAX,
        )
        return [_noted(row) for row in reply[2:]], reply[1].decode()

    async def dead_letters(
        self, queue: Queue, page: BrowsePage
    ) -> tuple[list[DeadLetter], int | None]:
        reply = await self._read("list_dead_letters", queue, *page, limits.BROWSE_BYTES_MAX)
        return [_dead(queue.log_id, row) for row in reply[2:]], _more(reply[1])

    async def redrive(
        self, queue: Queue, page: BrowsePage, selection: DeadSelection, now: ScriptTime
    ) -> tuple[int, int | None]:
        reply = await self._write(
            "redrive_dead_letters",
            queue,
            now,
            page.messages_max,
            fifo_arg(queue),
            page.after_offset,
            limits.BROWSE_SCANNED_MAX,
            selection.reason,
            selection.group,
            *selection.offsets,
        )
        return reply[1], _more(reply[2])

    async def death_reasons(
        self, queue: Queue, after_offset: int
    ) -> tuple[list[DeathReason], int | None]:
        reply = await self._read("sum_dead_letters", queue, after_offset, limits.BROWSE_SCANNED_MAX)
        reasons = [DeathReason(reason.decode(), *rest) for reason, *rest in reply[2:]]
        return reasons, _more(reply[1])

    async def parked_groups(self, queue: Queue, after: str, groups_max: int) -> list[ParkedGroup]:
        reply = await self._read("list_parked_groups", queue, after, groups_max)
        return [_parked(row) for row in reply[1:]]

    async def park(self, queue: Queue, group: str, reason: str, now: ScriptTime) -> None:
        await self._write("park_group", queue, now, fifo_arg(queue), group, reason)

    async def resume(self, queue: Queue, group: str) -> int | None:
        reply = await self._write("resume_group", queue, fifo_arg(queue), group)
        return None if reply[1] < 0 else int(reply[1])


def _more(last: int) -> int | None:
    return None if last < 0 else last


def _noted(row: Reply) -> Noted:
    place, what, at_ms, until_ms, number, text, details = row
    event_type = MessageEventType(what.decode())
    is_delivery = event_type is MessageEventType.DELIVERED
    event = MessageEvent(
        event_type,
        at_ms,
        until_ms or None,
        number or None,
        "" if is_delivery else text.decode(errors="ignore"),
        details.decode(errors="ignore"),
        text if is_delivery else b"",
    )
    return place.decode(), event


def _check_result(result: int) -> None:
    if result == _GONE:
        raise MessageNotFound
    if result == _OUT:
        raise MessageInFlight


def _content(
    log_id: LogId, offset: int, batch: bytes
) -> tuple[tuple[str, int, bytes, Headers, str, str], ParsedHeaders]:
    """Return the fields of a `MessageContent`, and the reserved headers."""
    record = decode_one(batch)
    parsed = parse_headers(record.headers)
    id_ = parsed.message_id or message_id(log_id, offset)
    headers = with_noted(parsed.headers, parsed.system)
    return (id_, offset, record.data, headers, parsed.content_type, parsed.group), parsed


def _browsed(log_id: LogId, row: Reply) -> BrowsedMessage:
    offset, arrival_ms, batch, state, due_ms, receives, failures, crashes, first_ms, key = row
    content, parsed = _content(log_id, offset, batch)
    return BrowsedMessage(
        *content,
        dedup_id=parsed.dedup_id,
        sent_at_ms=arrival_ms,
        state=MessageState(state.decode()),
        due_at_ms=None if due_ms < 0 else due_ms,
        receive_count=receives,
        failures=failures,
        crash_count=crashes,
        first_received_at_ms=first_ms or None,
        dead_letter_source=parsed.dead_letter_source,
        dead_letter=origin_of(parsed.system),
        consumer_key=key,
    )


def _dead(log_id: LogId, row: Reply) -> DeadLetter:
    offset, arrival_ms, receives, failures, crashes, _, died_ms, reason, batch, *failure = row
    last, details, key = failure
    content, parsed = _content(log_id, offset, batch)
    return DeadLetter(
        *content,
        sent_at_ms=arrival_ms,
        died_at_ms=died_ms,
        reason=reason.decode(),
        receive_count=receives,
        failures=failures,
        crash_count=crashes,
        last_failure_reason=last.decode(),
        details=details.decode(),
        dead_letter=origin_of(parsed.system),
        consumer_key=key,
    )


def _parked(row: Reply) -> ParkedGroup:
    group, parked_ms, poison, reason, messages, first = row
    return ParkedGroup(
        group=group.decode(),
        parked_at_ms=parked_ms,
        poison_offset=None if poison < 0 else poison,
        reason=reason.decode(),
        messages=messages,
        first_offset=None if first < 0 else first,
    )
