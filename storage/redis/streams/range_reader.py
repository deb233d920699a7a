"""Bulk reads of a log, entry by entry: for copying or counting it, not for consumers."""

from collections.abc import Sequence

import msgspec

from storage.domain import limits
from storage.domain.clock import SERVER_TIME
from storage.domain.log.address import LogAddress
from storage.domain.log.entry import LogEntry
from storage.domain.log.record_batch import decode_one, encode_batch
from storage.domain.names import LogId
from storage.domain.streams.stream import LogRecord
from storage.hot_store.log_store import EntryRange, LogRangeReader
from storage.redis.keys import reader_keys
from storage.redis.queues.script_args import as_stream_record
from storage.redis.script_store import ScriptStore
from storage.redis.transport.client import Reply
from storage.redis.transport.script_status import checked


class RedisRangeReader(ScriptStore, LogRangeReader):
    """Bulk reads by the script of ordinary reads."""

    async def read(
        self, log: LogAddress, first: int, end: int, bytes_max: int = limits.RANGE_BYTES_MAX
    ) -> EntryRange:
        keys = reader_keys(log.namespace, log.log_id, is_view=log.is_view)
        count = min(limits.RANGE_RECORDS_MAX, max(1, end - first))
        reply = checked(
            await self._pipeline.read(
                "read_log", keys, SERVER_TIME, "offset", first, count, bytes_max, "0"
            )
        )
        start, next_, replies = reply[2], reply[3], reply[6:]
        entries = [entry for entry in map(_entry, replies) if entry.first < end]
        if log.is_view:
            entries = [_as_view_entry(log.log_id, entry) for entry in entries]
        return EntryRange(start, next_, _go_on(first, end, start, next_, entries), entries)


def _go_on(first: int, end: int, start: int, next_: int, entries: Sequence[LogEntry]) -> int:
    if first < start:
        return start
    return min(end, entries[-1].next if entries else next_)


def _entry(reply: Reply) -> LogEntry:
    entry_id, fields = reply
    first, arrival_ms = (int(number) for number in entry_id.split(b"-"))
    pairs = [*zip(fields[::2], fields[1::2], strict=True)]
    batches = tuple(value for name, value in pairs if name == b"d")
    numbers = {name: int(value) for name, value in pairs if name != b"d"}
    size_bytes = sum(map(len, batches))
    return LogEntry(first, arrival_ms, numbers.get(b"n", 1), size_bytes, numbers[b"c"], batches)


def _as_view_entry(log_id: LogId, entry: LogEntry) -> LogEntry:
    """Convert a message's entry to that of its queue's stream view."""
    message = LogRecord(entry.first, entry.arrival_ms, decode_one(entry.batches[0]))
    batch = encode_batch([as_stream_record(log_id, message).record])
    return msgspec.structs.replace(entry, batches=(batch,))
