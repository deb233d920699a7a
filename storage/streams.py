"""Streams: append by key or to a shard, and read a shard or all of them, from the log."""

import asyncio
import hashlib
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar, cast

from storage.catalog import Catalog
from storage.domain import limits
from storage.domain.batches import CONTENT_TYPE, Record
from storage.domain.clock import Clock
from storage.domain.errors import (
    BatchTooLarge,
    MessageTooLarge,
    MillstreamError,
    OffsetExpired,
    OffsetOutOfRange,
    StorageUnavailable,
    StreamNotFound,
    ValidationFailed,
)
from storage.domain.limits import Limits
from storage.domain.messages import check_header_names
from storage.domain.names import LogId, StreamName
from storage.domain.streams import (
    UNCONDITIONAL,
    AppendCondition,
    Appended,
    Gap,
    LogRecord,
    ReadFrom,
    Shard,
    ShardRead,
    ShardState,
    Stream,
)
from storage.logs import LogGone, LogKeeper
from storage.redis.answers import LogNotReady, Refusal
from storage.redis.logs import AppendPart, Appends, HotLogs, HotRead, LogAddress
from storage.redis.wakeups import Wakeups

T = TypeVar("T")


class Streams:
    """The streams of a deployment. Every verb raises StreamNotFound for a stream that is not there."""

    def __init__(
        self,
        hot: HotLogs,
        catalog: Catalog,
        keeper: LogKeeper,
        wakeups: Wakeups,
        clock: Clock,
        known: Limits,
    ) -> None:
        self._hot = hot
        self._catalog = catalog
        self._keeper = keeper
        self._wakeups = wakeups
        self._clock = clock
        self._limits = known
        self._gatherers: dict[LogId, Appends] = {}

    async def append(
        self, name: StreamName, records: Sequence[Record], *, idempotency_key: str = ""
    ) -> list[Appended | MillstreamError]:
        """Append each record to the shard that takes its key; one answer for each, in order.

        Records of one shard are appended together or not at all; shards succeed or fail on their own.
        Records without a key go to one shard, chosen for the call. A repeat with the same idempotency key
        within ten minutes adds nothing.
        """
        stream = await self._catalog.stream(name)
        sizes = _check_records(stream, records)
        return await self._on(stream, partial(self._append, records, sizes, idempotency_key))

    async def _append(
        self, records: Sequence[Record], sizes: Sequence[int], key: str, stream: Stream
    ) -> list[Appended | MillstreamError]:
        groups = _by_shard(stream, records, key)
        if len(groups) == 1:
            [shard] = groups
            done = await self._try_some(stream, shard, records, sum(sizes), key)
            return [done] * len(records) if isinstance(done, MillstreamError) else [*done]
        outcomes = await asyncio.gather(
            *(
                self._try_some(
                    stream,
                    shard,
                    [records[place] for place in places],
                    sum([sizes[place] for place in places]),
                    key,
                )
                for shard, places in groups.items()
            )
        )
        answers: list[Appended | MillstreamError] = [_UNANSWERED] * len(records)
        for places, outcome in zip(groups.values(), outcomes, strict=True):
            for nth, place in enumerate(places):
                answers[place] = outcome if isinstance(outcome, MillstreamError) else outcome[nth]
        return answers

    async def _try_some(
        self, stream: Stream, shard: Shard, records: Sequence[Record], size_bytes: int, key: str
    ) -> list[Appended] | MillstreamError:
        """One shard's part of an append, or why it was refused: the other shards' parts stand."""
        try:
            return await self._append_some(stream, shard, records, size_bytes, UNCONDITIONAL, key)
        except MillstreamError as error:
            return error

    async def append_to_shard(
        self,
        name: StreamName,
        shard: int,
        records: Sequence[Record],
        condition: AppendCondition = UNCONDITIONAL,
    ) -> list[Appended]:
        """Append to one shard, all records or none.

        Raises ShardNotFound, and what the condition may meet: ProducerFenced, SequenceOutOfOrder,
        DuplicateForgotten, OffsetMismatch, ShardClosed, FenceMismatch.
        """
        stream = await self._catalog.stream(name)
        sizes = _check_records(stream, records)
        return await self._on(
            stream,
            lambda current: self._append_some(
                current, current.shard(shard), records, sum(sizes), condition, ""
            ),
        )

    async def _append_some(
        self,
        stream: Stream,
        shard: Shard,
        records: Sequence[Record],
        size_bytes: int,
        condition: AppendCondition,
        key: str,
    ) -> list[Appended]:
        part = AppendPart(records, condition, key, _fingerprint(records) if key else "", size_bytes)
        at = LogAddress(stream.name.namespace, shard.log_id)
        done = await self._mended(at, lambda: self._hot.append(self._gatherer(at), part))
        if done.left < self._limits.reservation_offsets_min // 2:
            self._keeper.note(at, done.offset + len(records), done.left)
        return [
            Appended(shard.index, done.offset + nth, done.duplicate) for nth in range(len(records))
        ]

    def _gatherer(self, at: LogAddress) -> Appends:
        epoch, now = self._keeper.store_epoch, self._clock.script_time()
        known = self._gatherers.get(at.log_id)
        if known is None or known.store_epoch != epoch or known.now != now:
            known = self._gatherers[at.log_id] = Appends(at, epoch, now, self._limits)
        return known

    async def read_shard(
        self,
        name: StreamName,
        shard: int,
        where: ReadFrom,
        *,
        records_max: int = limits.READ_RECORDS_MAX,
        bytes_max: int = limits.READ_BYTES_MAX,
        wait_ms: int = 0,
    ) -> ShardRead:
        """Read one shard; at its end wait up to `wait_ms` for more. Changes nothing: the same read again
        gives the same records.

        Raises OffsetExpired, OffsetOutOfRange, ShardNotFound.
        """
        _check_read(records_max, bytes_max, wait_ms)
        stream = await self._catalog.stream(name)
        log_id = stream.shard(shard).log_id
        read = partial(self._read, shard, where, records_max, bytes_max)
        if wait_ms == 0:
            return await self._on(stream, partial(read, False))
        with self._wakeups.waiting([log_id], alone=False) as waiter:
            until = _seconds_from_now(wait_ms)
            while True:
                waiter.start_over()
                found = await self._on(stream, partial(read, True))
                if found.records or found.gap or _seconds_from_now(0) >= until:
                    return found
                read = partial(
                    self._read, shard, ReadFrom(offset=found.next_offset), records_max, bytes_max
                )
                await waiter.wait(until - _seconds_from_now(0))

    async def _read(
        self,
        shard: int,
        where: ReadFrom,
        records_max: int,
        bytes_max: int,
        ask_to_wake: bool,
        stream: Stream,
    ) -> ShardRead:
        how, number = _spelled(where)
        at = LogAddress(stream.name.namespace, stream.shard(shard).log_id)
        found = await self._mended(
            at,
            lambda: self._hot.read(
                at,
                how,
                number,
                records_max=records_max,
                bytes_max=bytes_max,
                ask_to_wake=ask_to_wake,
                now=self._clock.script_time(),
            ),
        )
        return _shard_read(shard, found)

    async def read(
        self,
        name: StreamName,
        positions: Mapping[int, int],
        *,
        records_max: int = limits.READ_RECORDS_MAX,
        bytes_max: int = limits.READ_BYTES_MAX,
        wait_ms: int = 0,
    ) -> list[ShardRead]:
        """Read all shards, each from its position or else its oldest record; one answer for each.

        What expired or was never filled is reported as a gap, and reading goes on behind it.
        """
        _check_read(records_max, bytes_max, wait_ms)
        stream = await self._catalog.stream(name)
        read = partial(self._read_all, positions, records_max, bytes_max)
        if wait_ms == 0:
            return await self._on(stream, partial(read, False))
        with self._wakeups.waiting(
            [shard.log_id for shard in stream.shards], alone=False
        ) as waiter:
            until = _seconds_from_now(wait_ms)
            while True:
                waiter.start_over()
                found = await self._on(stream, partial(read, True))
                if any(part.records or part.gap for part in found) or _seconds_from_now(0) >= until:
                    return found
                await waiter.wait(until - _seconds_from_now(0))

    async def _read_all(
        self,
        positions: Mapping[int, int],
        records_max: int,
        bytes_max: int,
        ask_to_wake: bool,
        stream: Stream,
    ) -> list[ShardRead]:
        share = max(1, records_max // len(stream.shards))
        share_bytes = max(1, bytes_max // len(stream.shards))
        return await asyncio.gather(
            *(
                self._read_on(
                    stream, shard.index, positions.get(shard.index), share, share_bytes, ask_to_wake
                )
                for shard in stream.shards
            )
        )

    async def _read_on(
        self,
        stream: Stream,
        shard: int,
        offset: int | None,
        records_max: int,
        bytes_max: int,
        ask_to_wake: bool,
    ) -> ShardRead:
        where = ReadFrom(time_ms=0) if offset is None else ReadFrom(offset=offset)
        try:
            return await self._read(shard, where, records_max, bytes_max, ask_to_wake, stream)
        except OffsetExpired as expired:
            start = int(expired.facts["earliest_offset"])
            read = await self._read(
                shard, ReadFrom(offset=start), records_max, bytes_max, ask_to_wake, stream
            )
            return _with_expired(read, offset or 0, start)

    async def shards(self, name: StreamName) -> list[ShardState]:
        """The shards of a stream, each with the extent of its log."""
        stream = await self._catalog.stream(name)
        return await asyncio.gather(*(self._state(stream, shard) for shard in stream.shards))

    async def _state(self, stream: Stream, shard: Shard) -> ShardState:
        at = LogAddress(stream.name.namespace, shard.log_id)
        extent = await self._on(stream, lambda _: self._mended(at, lambda: self._hot.extent(at)))
        return ShardState(shard, extent.start, extent.next, extent.bytes)

    async def trim(self, name: StreamName, entries_max: int) -> int:
        """One round of retention over all shards, for the sweep; gives the entries freed."""
        stream = await self._catalog.stream(name)
        now = self._clock.script_time()
        freed = 0
        for shard in stream.shards:
            at = LogAddress(stream.name.namespace, shard.log_id)
            trim = partial(
                self._hot.trim,
                at,
                stream.spec.retention_ms,
                stream.spec.retention_bytes,
                entries_max,
                now,
            )
            freed += await self._on(stream, lambda _, at=at, trim=trim: self._mended(at, trim))  # type: ignore[misc]
        return freed

    async def _mended(self, at: LogAddress, work: Callable[[], Awaitable[T]]) -> T:
        """Do work on a log, seeing to it where its script asks for that. Raises LogNotReady for a log that
        its stream's definition must confirm first."""
        for _ in range(limits.MENDS_MAX):
            try:
                return await work()
            except LogNotReady as problem:
                if problem.refusal is Refusal.DELETED:
                    raise
                await self._keeper.mend(at, problem)
        raise StorageUnavailable("The shard is being made or moved; try again.")

    async def _on(self, stream: Stream, verb: Callable[[Stream], Awaitable[T]]) -> T:
        """Run a verb on the stream; once more with its current definition when the held one was stale."""
        try:
            return await verb(stream)
        except (LogNotReady, LogGone):
            current = await self._catalog.fresh_stream(stream.name)
        if current.stream_id == stream.stream_id:
            raise StreamNotFound(f"There is no stream '{stream.name.name}'.")
        try:
            return await verb(current)
        except (LogNotReady, LogGone):
            raise StreamNotFound(f"There is no stream '{stream.name.name}'.") from None


_UNANSWERED = StorageUnavailable()
_OWN_HEADERS = frozenset({CONTENT_TYPE})
"""What a front door may say of a record in a reserved header."""


def _by_shard(stream: Stream, records: Sequence[Record], key: str) -> dict[Shard, Sequence[int]]:
    """The places of the records that each shard takes."""
    if len(stream.open_shards) == 1:
        return {stream.open_shards[0]: range(len(records))}
    keyless = key or str(random.random())  # noqa: S311  any shard will do
    shards = stream.open_shards_for(record.key or keyless for record in records)
    groups: dict[Shard, list[int]] = {}
    for place, shard in enumerate(shards):
        groups.setdefault(shard, []).append(place)
    return cast(dict[Shard, Sequence[int]], groups)


def _check_records(stream: Stream, records: Sequence[Record]) -> list[int]:
    """The records' sizes in bytes. Raises for a batch that this stream does not take."""
    if not records:
        raise ValidationFailed.at("/records", "A batch has at least one record", "too_few")
    if len(records) > limits.BATCH_RECORDS_MAX:
        raise BatchTooLarge(f"A call appends at most {limits.BATCH_RECORDS_MAX} records.")
    sizes = [record.size_bytes if record.headers else _small_size(record) for record in records]
    largest = stream.spec.record_bytes_max
    if max(sizes) > largest:
        place = next(nth for nth, size in enumerate(sizes) if size > largest)
        raise MessageTooLarge(
            f"Record {place} has {sizes[place]} bytes, key and headers included; the stream takes {largest}.",
            record_bytes_max=largest,
        )
    for place, record in enumerate(records):
        if len(record.key) > limits.KEY_CHARACTERS_MAX:
            detail = f"A key has at most {limits.KEY_CHARACTERS_MAX} characters"
            raise ValidationFailed.at(f"/records/{place}/key", detail, "too_long")
        if record.headers:
            check_header_names(record.headers, _OWN_HEADERS)
    return sizes


def _small_size(record: Record) -> int:
    """`size_bytes` of a record without headers, without a call for most keys."""
    key = record.key
    return len(record.data) + (len(key) if key.isascii() else len(key.encode()))


def _fingerprint(records: Iterable[Record]) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for record in records:
        digest.update(record.key.encode())
        digest.update(record.data)
        for name, kind, value in record.headers:
            digest.update(f"{name}\0{kind}\0".encode() + value)
    return digest.hexdigest()


def _check_read(records_max: int, bytes_max: int, wait_ms: int) -> None:
    if not 1 <= records_max <= limits.READ_RECORDS_MAX:
        raise ValidationFailed.at(
            "/limit", f"must be 1 to {limits.READ_RECORDS_MAX}", "out_of_range"
        )
    if not 1 <= bytes_max <= limits.READ_BYTES_MAX:
        raise ValidationFailed.at(
            "/bytes_max", f"must be 1 to {limits.READ_BYTES_MAX}", "out_of_range"
        )
    if not 0 <= wait_ms <= limits.WAIT_MS_MAX:
        raise ValidationFailed.at("/wait_seconds", "must be 0 to 20", "out_of_range")


def _spelled(where: ReadFrom) -> tuple[str, int]:
    match where:
        case ReadFrom(offset=int(offset), time_ms=None, tail=None):
            return "offset", offset
        case ReadFrom(offset=None, time_ms=int(time_ms), tail=None):
            return "time", time_ms
        case ReadFrom(offset=None, time_ms=None, tail=int(tail)):
            return "tail", tail
        case _:
            raise ValidationFailed.at(
                "/offset", "Exactly one of offset, time and tail", "exclusive"
            )


def _shard_read(shard: int, found: HotRead) -> ShardRead:
    """A hole ends a read that has records, and is told by the next one, which begins with it."""
    if found.start_at < found.start:
        raise OffsetExpired(
            f"The shard's oldest offset is {found.start}.",
            earliest_offset=found.start,
            next_offset=found.next,
        )
    if found.start_at > found.next:
        raise OffsetOutOfRange(f"The shard's next offset is {found.next}.", next_offset=found.next)
    records = _unbroken(found.records)
    first = records[0].offset if records else found.next
    gap = Gap(found.start_at, first, "hole") if first > found.start_at else None
    next_offset = records[-1].offset + 1 if records else found.next
    behind_ms = found.now_ms - records[-1].arrival_ms if records and next_offset < found.next else 0
    return ShardRead(shard, records, next_offset, found.start, found.next, behind_ms, gap)


def _unbroken(records: Sequence[LogRecord]) -> Sequence[LogRecord]:
    """The records up to the first hole between two of them."""
    if not records or records[-1].offset - records[0].offset == len(records) - 1:
        return records
    count = next(
        nth for nth, record in enumerate(records) if record.offset != records[0].offset + nth
    )
    return records[:count]


def _with_expired(read: ShardRead, first: int, start: int) -> ShardRead:
    gap = Gap(first, read.gap.next if read.gap else start, "expired")
    return ShardRead(
        read.shard, read.records, read.next_offset, read.start, read.tip, read.behind_ms, gap
    )


def _seconds_from_now(wait_ms: int) -> float:
    return asyncio.get_running_loop().time() + wait_ms / limits.SECOND_MS
