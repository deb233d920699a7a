"""Verbs of logs: append, read, trim, close, fence, and their repair."""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from storage.domain import limits
from storage.domain.archive import LogBounds
from storage.domain.clock import SERVER_TIME, ScriptTime
from storage.domain.log.address import LogAddress
from storage.domain.log.entry import LogEntry
from storage.domain.log.record_batch import Record
from storage.domain.streams.columnar_batch import PackedColumns
from storage.domain.streams.idempotence import SequenceRange
from storage.domain.streams.load_scaler import Load
from storage.domain.streams.producers import Inherited
from storage.domain.streams.stream import UNCONDITIONAL, AppendCondition, LogRecord, Shard


class AppendPart(msgspec.Struct, frozen=True, gc=False):
    """One caller's append to a log.

    Columns are plain: without a condition and a key. `needs_parents`: if the log does not know the producer, the result is
    ParentsRequired; `inherited` is the parents' state of it. `claims` are those of monotonic producers, instead of a
    condition; the result may be PartialDuplicate. With `dedup_keys`, one for each record, a record is added unless one with
    its key was within the window; the result has `signed_offsets`.
    """

    records: Sequence[Record] | PackedColumns
    condition: AppendCondition = UNCONDITIONAL
    idempotency_key: str = ""
    fingerprint: str = ""
    size_bytes: int = 0
    inherited: Inherited | None = None
    needs_parents: bool = False
    claims: tuple[SequenceRange, ...] = ()
    dedup_keys: Sequence[str] = ()

    @property
    def is_plain(self) -> bool:
        """True if the part can share a batch: only the log's own state decides about it."""
        has_facts = self.idempotency_key or self.claims or self.dedup_keys
        return self.condition is UNCONDITIONAL and not has_facts


class PartAppended(msgspec.Struct, frozen=True, gc=False):
    """Offset of a part's first record. `left`: offsets that are reserved beyond the log's end.

    `signed_offsets`: of a part with deduplication keys, one for each record (`storage.domain.streams.deduplication`).
    """

    offset: int
    duplicate: bool
    left: int
    arrival_ms: int = 0
    signed_offsets: Sequence[int] = ()


ProducerState = tuple[Any, ...]
"""(epoch, last sequence, touched ms, (first sequence, records, offset)…), the newest batch last."""


class LogOpening(NamedTuple):
    """Continuation of a log in a store epoch, `closed` to these children if any."""

    next_offset: int
    ceiling: int
    store_epoch: int
    log_epoch: int
    closed: bytes = b""


class ReadRequest(msgspec.Struct, frozen=True):
    """A read from an 'offset', from a 'time' in ms, or of the last records ('tail').

    `register_waiter`: if nothing is there, the next append is announced.
    """

    how: str
    number: int
    records_max: int
    bytes_max: int
    register_waiter: bool = False


class HotRead(msgspec.Struct, frozen=True):
    """Result of `read_log`: records from `start_at` on, possibly after a hole.

    A closed log has children.
    """

    now_ms: int
    start: int
    next: int
    start_at: int
    records: Sequence[LogRecord]
    children: tuple[Shard, ...]


class Extent(msgspec.Struct, frozen=True):
    """A log's oldest readable offset, the next one to be written, and its size in bytes.

    `knows_producers`: it remembers batches of producers, perhaps idle ones. `fenced`: only one writer may append.
    `log_epoch` rises each time the hot store lost some of it.
    """

    start: int
    next: int
    bytes: int
    knows_producers: bool
    fenced: bool
    log_epoch: int


class HotBacklog(msgspec.Struct, frozen=True):
    """A log's extent, and its backlog for the archive.

    `bytes` of the backlog, and how long the oldest of it has waited by the store's clock, or -1 if it is empty.
    """

    start: int
    next: int
    closed: bool
    bytes: int
    waited_ms: int


class EntryRange(msgspec.Struct, frozen=True):
    """Entries of a log, in order.

    The first and the last may reach beyond the requested range. `start` and `next` are the log's oldest readable offset
    and the next one to be written. `go_on` is the offset to continue from: the one after the last entry, at most the end
    of the range. Below `start` nothing is found, and `go_on` is `start`.
    """

    start: int
    next: int
    go_on: int
    entries: Sequence[LogEntry]


class WriterWatermarks(msgspec.Struct, frozen=True, gc=False):
    """A log's state of monotonic producers.

    `lasts`: last sequences of the requested producers. `producers`: number of all that it knows; `remembers_retired`: some
    retired producers may still send something.
    """

    closed: bool
    producers: int
    remembers_retired: bool
    lasts: Sequence[int]


class LogStore(Protocol):
    """Operations common to all logs. Raises LogNotReady where the log needs repair first."""

    async def create(self, log: LogAddress, opening: LogOpening) -> bool:
        """Create the log unless it exists. False when it was deleted."""
        ...

    async def advance(self, log: LogAddress, opening: LogOpening) -> None:
        """Advance the log to a new store epoch, unless another process did."""
        ...

    async def close(
        self, log: LogAddress, children: Sequence[Shard], fence: str, store_epoch: int
    ) -> tuple[bool, str]:
        """Close the log to its children, which were given this fence.

        Returns whether it is closed, and its fence. It stays open while its fence is a different one. Without children this
        only reports.
        """
        ...

    async def set_fence(
        self, log: LogAddress, token: str, expected: str | None, store_epoch: int
    ) -> int:
        """Set the fencing token that appends must have, or none; return the log's next offset.

        Raises FenceMismatch, ShardClosed.
        """
        ...

    async def raise_ceiling(self, log: LogAddress, ceiling: int, store_epoch: int) -> None:
        """Allow the offsets below `ceiling`, which Postgres has reserved."""
        ...

    async def tombstone(self, log: LogAddress) -> None:
        """Delete everything in the log and leave a tombstone."""
        ...

    async def delete_tombstone(self, log: LogAddress) -> None:
        """Delete a tombstone."""
        ...

    def append(
        self, log: LogAddress, part: AppendPart, *, store_epoch: int, indexed: bool, now: ScriptTime
    ) -> "asyncio.Future[PartAppended]":
        """Append a part together with others of the same time and epoch.

        `indexed`: the stream has a key index. The result may be LogNotReady, ParentsRequired and the errors of the part's
        condition.
        """
        ...

    async def switch_view(self, log: LogAddress, *, on: bool) -> None:
        """Enable or disable a queue's stream view; no effect if it is in that state."""
        ...

    async def recall_producer(self, log: LogAddress, producer_id: str) -> ProducerState | None:
        """Return a closed log's state of a producer, or None. Raises LogOpen if it is not closed."""
        ...

    async def read(
        self, log: LogAddress, request: ReadRequest, now: ScriptTime = SERVER_TIME
    ) -> HotRead:
        """Read records of the log."""
        ...

    async def extent(self, log: LogAddress) -> Extent:
        """Return the extent of the log."""
        ...

    async def weigh(self, log: LogAddress) -> int:
        """Return the size of the log in bytes; 0 for one that does not exist."""
        ...

    async def trim(
        self, log: LogAddress, bounds: LogBounds, entries_max: int, now: ScriptTime
    ) -> int:
        """Delete records beyond the bounds; return the entries freed, 0 at the end."""
        ...

    async def backlog(self, log: LogAddress, archived: int, now: ScriptTime) -> HotBacklog:
        """Return the log's backlog for the archive, given that it is archived up to `archived`."""
        ...

    async def sample_load(self, log: LogAddress, now: ScriptTime) -> Load | None:
        """Return the log's load over the last whole window; None before there was one."""
        ...

    async def latest_of_key(self, log: LogAddress, key: str) -> LogRecord | bool:
        """Return the newest record of a key that the log's index knows.

        False when the log never had one, True when it had one that has expired, or may have had one.
        """
        ...

    async def sweep_key_index(self, log: LogAddress, keys_max: int) -> int:
        """Remove some keys whose newest record has expired; return their number."""
        ...

    async def truncate(self, log: LogAddress, before: int, entries_max: int) -> int:
        """Delete the records before an offset; return the oldest readable one.

        Raises OffsetOutOfRange.
        """
        ...


class LogRangeReader(Protocol):
    """Bulk reads of shards' logs and queues' views.

    Raises LogNotReady where a log needs repair first.
    """

    async def read(
        self, log: LogAddress, first: int, end: int, bytes_max: int = limits.RANGE_BYTES_MAX
    ) -> EntryRange:
        """Return the entries with offsets of [first, end).

        As many as one call returns, at least one if any exists.
        """
        ...


class WatermarkStore(Protocol):
    """Queries and retires monotonic producers. Raises LogNotReady where the log needs repair."""

    async def get(self, log: LogAddress, producer_ids: Sequence[str]) -> WriterWatermarks:
        """Return the producers' last sequences.

        See `storage.domain.streams.idempotence` for the values that mean none.
        """
        ...

    async def retire(self, log: LogAddress, producer_ids: Sequence[str], now: ScriptTime) -> int:
        """Retire finished producers; return how many the log knew.

        Late records of theirs are refused.
        """
        ...
