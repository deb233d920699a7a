"""Reads of one shard from a position, or of all shards with children after their parents."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple, Self

import attrs
from msgspec.structs import replace

from storage.archive.tiered_reader import TieredReader, TierRead, as_hot
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import OffsetExpired, OffsetOutOfRange, RecordNotFound, ValidationFailed
from storage.domain.log.address import LogAddress
from storage.domain.names import LogId, StreamName
from storage.domain.streams.lineage import (
    FULLY_READ,
    expired_positions,
    needs_refresh,
    positions_after,
    read_frontier,
)
from storage.domain.streams.stream import (
    Gap,
    GapReason,
    LogRecord,
    ReadFrom,
    Shard,
    ShardRead,
    ShardState,
    Stream,
    StreamRead,
    hash_key,
)
from storage.hot_store.log_store import HotRead, LogStore, ReadRequest
from storage.hot_store.wakeups import Wakeups
from storage.log.gap_reasons import GapReasons
from storage.log.stream_executor import StreamExecutor
from storage.streams.reshard import Resharder


class _ReadSize(NamedTuple):
    """The records and bytes that a read may return, and whether its caller waits for more."""

    records: int
    bytes: int
    waits: bool

    @classmethod
    def checked(cls, records_max: int, bytes_max: int, wait_ms: int) -> Self:
        """Return the size of a request. Raises ValidationFailed."""
        for pointer, value, least, most in (
            ("/limit", records_max, 1, limits.READ_RECORDS_MAX),
            ("/bytes_max", bytes_max, 1, limits.READ_BYTES_MAX),
        ):
            if not least <= value <= most:
                raise ValidationFailed.at(pointer, f"must be {least} to {most}", "out_of_range")
        if not 0 <= wait_ms <= limits.WAIT_MS_MAX:
            raise ValidationFailed.at("/wait_seconds", "must be 0 to 20", "out_of_range")
        return cls(records_max, bytes_max, wait_ms > 0)

    def shared_by(self, shards: int) -> Self:
        """Return the share of each of several shards."""
        count = max(1, shards)
        return self._replace(
            records=max(1, self.records // count), bytes=max(1, self.bytes // count)
        )


@attrs.define(eq=False, slots=False, kw_only=True)
class RecordReader:
    """Reads of streams; they change nothing, and the same read again returns the same records.

    `stream_id`: the stream that a position belongs to. If another one has the name, StreamRecreated is raised.
    """

    _hot: LogStore
    _executor: StreamExecutor
    _resharder: Resharder
    wakeups: Wakeups
    _clock: Clock
    _archive: TieredReader | None
    _gap_reasons: GapReasons

    async def read_shard(
        self,
        name: StreamName,
        shard: int,
        where: ReadFrom,
        *,
        records_max: int = limits.READ_RECORDS_MAX,
        bytes_max: int = limits.READ_BYTES_MAX,
        wait_ms: int = 0,
        stream_id: LogId | None = None,
        skip_expired: bool = False,
    ) -> ShardRead:
        """Read one shard; at its end, wait up to `wait_ms` for more records.

        The end of a closed shard is returned immediately, with its children. `skip_expired`: records that no longer exist are
        a gap rather than an error.

        Raises OffsetExpired, OffsetOutOfRange, ShardNotFound, StreamRecreated.
        """
        size = _ReadSize.checked(records_max, bytes_max, wait_ms)
        stream = await self._executor.stream(name, stream_id)

        async def read(current: Stream) -> ShardRead:
            nonlocal stream
            stream = await self._executor.refresh_for_shard(current, shard, stream_id)
            return await self._read(stream, shard, where, size, skip_expired=skip_expired)

        if wait_ms == 0:
            return await self._executor.run(stream, read, stream_id)
        stream = await self._executor.refresh_for_shard(stream, shard, stream_id)
        channel = _address(stream, stream.shard(shard)).channel
        with self.wakeups.waiting([channel], alone=False) as waiter:
            until = _seconds_from_now(wait_ms)
            while True:
                waiter.reset()
                shard_read = await self._executor.run(stream, read, stream_id)
                if _has_news(shard_read) or shard_read.ended or _seconds_from_now(0) >= until:
                    return shard_read
                # From now on, the position belongs to this stream.
                where, stream_id = ReadFrom(offset=shard_read.next_offset), stream.stream_id
                await waiter.wait(until - _seconds_from_now(0))

    async def read_one(
        self, name: StreamName, shard: int, where: ReadFrom, stream_id: LogId | None
    ) -> ShardRead:
        """Read at most one record of a shard, like `read_shard`."""
        return await self.read_shard(
            name, shard, where, records_max=1, bytes_max=1, stream_id=stream_id
        )

    async def _read(
        self,
        stream: Stream,
        shard: int,
        where: ReadFrom,
        size: "_ReadSize",
        *,
        skip_expired: bool = False,
    ) -> ShardRead:
        start = where
        while True:
            try:
                read = await self._read_tiers(stream, shard, start, size)
            except OffsetExpired as expired:
                if not skip_expired:
                    raise
                start = ReadFrom(offset=int(expired.facts["earliest_offset"]))
            else:
                return read if start is where else _with_expired(read, where.offset or 0)

    async def _read_tiers(
        self, stream: Stream, shard: int, where: ReadFrom, size: "_ReadSize"
    ) -> ShardRead:
        target = stream.shard(shard)
        request = _read_request(where, size)
        log = _address(stream, target)

        async def read() -> HotRead:
            return await self._hot.read(log, request, self._clock.script_time())

        hot_read = await self._executor.with_repair(log, read)
        if not target.is_open and not hot_read.children:
            # A store restored from an older copy lost the mark that this log is closed.
            await self._resharder.reclose(stream, target)
            hot_read = await self._executor.with_repair(log, read)
        if self._archive is None:
            tier_read = as_hot(hot_read)
        else:
            tier_read = await self._archive.read(stream, target, request, hot_read)
        shard_read = _shard_read(stream, target, tier_read)
        if shard_read.gap is None:
            return shard_read
        gap = await self._gap_reasons.resolve(target.log_id, shard_read.gap)
        return replace(shard_read, gap=gap)

    async def read(
        self,
        name: StreamName,
        positions: Mapping[int, int],
        *,
        records_max: int = limits.READ_RECORDS_MAX,
        bytes_max: int = limits.READ_BYTES_MAX,
        wait_ms: int = 0,
        stream_id: LogId | None = None,
    ) -> StreamRead:
        """Read all shards of a stream from the positions that the last read returned.

        Without a position, reading starts at the oldest records. Children are read once their parents have been read to the
        end, so that each key keeps its order.

        Offsets that expired or were never filled are reported as a gap, and reading continues behind it. Raises
        OffsetOutOfRange, StreamRecreated.
        """
        size = _ReadSize.checked(records_max, bytes_max, wait_ms)
        stream = await self._executor.stream(name, stream_id)
        if needs_refresh(stream, positions):
            stream = await self._executor.current(name, stream_id)
        until = _seconds_from_now(wait_ms)
        while True:
            shards = [stream.shard(index) for index in _to_read(stream, positions)]
            channels = [_address(stream, shard).channel for shard in shards]
            with self.wakeups.waiting(channels, alone=False) as waiter:
                waiter.reset()
                read = partial(self._read_all, positions, size)
                stream_read = await self._executor.run(stream, read, stream_id)
                stream_id = stream_read.stream_id
                if any(_has_news(one) for one in stream_read.shards):
                    return stream_read
                if not any(one.ended for one in stream_read.shards):
                    left = until - _seconds_from_now(0)
                    if left <= 0:
                        return stream_read
                    await waiter.wait(left)
            if stream_id != stream.stream_id or _has_unknown_children(stream, stream_read):
                stream = await self._executor.current(name, stream_id)
            if any(one.ended for one in stream_read.shards) and read_frontier(
                stream, stream_read.positions
            ) == read_frontier(stream, positions):
                return stream_read
            positions = stream_read.positions

    async def _read_all(
        self, positions: Mapping[int, int], size: "_ReadSize", stream: Stream
    ) -> StreamRead:
        reads = await self._read_each(stream, _to_read(stream, positions), size)
        after = positions_after(read_frontier(stream, positions), reads)
        gone = [
            _gone(index, offset) for index, offset in expired_positions(stream, positions).items()
        ]
        return StreamRead([*gone, *reads], after, stream.stream_id)

    async def _read_each(
        self, stream: Stream, positions: Mapping[int, int | None], size: "_ReadSize"
    ) -> list[ShardRead]:
        """Read these shards at once, each its share of the size."""
        share = size.shared_by(len(positions))
        return await asyncio.gather(
            *(
                self._read(stream, index, _from(offset), share, skip_expired=True)
                for index, offset in positions.items()
            )
        )

    async def latest_of_key(self, name: StreamName, key: str) -> tuple[int, LogRecord]:
        """Return the newest record of a partition key, and the shard it is in.

        Finds records that were routed by their key since the stream has a key index, not those with a
        `hash_key`, or appended to a shard's address, that lie elsewhere. Raises RecordNotFound, and ValidationFailed
        when the stream has no index.
        """
        if not 1 <= len(key) <= limits.KEY_CHARACTERS_MAX:
            detail = f"A key must be 1 to {limits.KEY_CHARACTERS_MAX} characters"
            raise ValidationFailed.at("/key", detail, "out_of_range")
        stream = await self._executor.stream(name)
        if not stream.spec.key_index:
            stream = await self._executor.current(name)
        if not stream.spec.key_index:
            raise ValidationFailed.at(
                "/key_index", "The stream does not have a key index", "not_allowed"
            )
        return await self._executor.run(stream, partial(self._latest, key))

    async def _latest(self, key: str, stream: Stream) -> tuple[int, LogRecord]:
        """Search the shard that takes the key's records, then the ones that took them before it."""
        [shard] = stream.open_shards_for([key])
        candidate: Shard | None = shard
        while candidate is not None:
            log = LogAddress(stream.name.namespace, candidate.log_id)
            latest = partial(self._hot.latest_of_key, log, key)
            latest_record = await self._executor.with_repair(log, latest)
            if isinstance(latest_record, LogRecord):
                return candidate.index, latest_record
            if latest_record:
                break  # what an older shard has may not be the newest
            place = hash_key(key)
            candidate = next(
                (one for one in stream.parents_of(candidate) if one.takes(place)), None
            )
        raise RecordNotFound

    async def read_shards(
        self,
        name: StreamName,
        positions: Mapping[int, int | None],
        *,
        records_max: int = limits.READ_RECORDS_MAX,
        bytes_max: int = limits.READ_BYTES_MAX,
        wait_ms: int = 0,
        stream_id: LogId | None = None,
    ) -> list[ShardRead]:
        """Read only these shards, each from its position, or from its oldest record for None.

        Expired records are reported as a gap; a shard that no longer exists is left out. Waits until one of them has
        something to report, which includes the end of a closed shard. Raises OffsetOutOfRange, StreamRecreated.
        """
        size = _ReadSize.checked(records_max, bytes_max, wait_ms)
        stream = await self._executor.stream(name, stream_id)
        if needs_refresh(stream, dict.fromkeys(positions, 0)):
            stream = await self._executor.current(name, stream_id)
        read = partial(self._read_existing, positions, size)
        until = _seconds_from_now(wait_ms)
        channels = [_address(stream, shard).channel for shard in _among(stream, positions)]
        with self.wakeups.waiting(channels, alone=False) as waiter:
            while True:
                waiter.reset()
                reads = await self._executor.run(stream, read, stream_id)
                left = until - _seconds_from_now(0)
                if left <= 0 or any(_has_news(one) or one.ended for one in reads):
                    return reads
                await waiter.wait(left)

    async def has_news(
        self, name: StreamName, positions: Mapping[int, int], stream_id: LogId
    ) -> bool:
        """Return whether a shard has a record, a gap or an end behind its position.

        So has one that expired. If none has, the next change of each is published. Raises OffsetOutOfRange, StreamRecreated.
        """
        stream = await self._executor.stream(name, stream_id)
        if needs_refresh(stream, positions):
            stream = await self._executor.current(name, stream_id)
        size = _ReadSize(1, limits.READ_BYTES_MAX, waits=True)
        read = partial(self._read_existing, positions, size)
        reads = await self._executor.run(stream, read, stream_id)
        return len(reads) < len(positions) or any(_has_news(one) or one.ended for one in reads)

    async def _read_existing(
        self, positions: Mapping[int, int | None], size: "_ReadSize", stream: Stream
    ) -> list[ShardRead]:
        existing = {shard.index: positions[shard.index] for shard in _among(stream, positions)}
        return await self._read_each(stream, existing, size)

    async def shards(self, name: StreamName, stream_id: LogId | None = None) -> list[ShardState]:
        """Return all shards of a stream by index, open and closed, each with its log's extent.

        Raises StreamRecreated.
        """
        stream = await self._executor.stream(name, stream_id)
        return await self._executor.run(stream, self._states, stream_id)

    async def next_offsets(self, stream: Stream) -> dict[int, int]:
        """Return the next offset of each shard of a definition that may take a record now."""
        shards = (*stream.open_shards, *stream.opening)
        offsets = await asyncio.gather(*(self._next_offset(stream, shard) for shard in shards))
        return {shard.index: offset for shard, offset in zip(shards, offsets, strict=True)}

    async def _next_offset(self, stream: Stream, shard: Shard) -> int:
        log = _address(stream, shard)
        return (await self._executor.with_repair(log, lambda: self._hot.extent(log))).next

    async def _states(self, stream: Stream) -> list[ShardState]:
        return await asyncio.gather(*(self._state(stream, shard) for shard in stream.shards))

    async def _state(self, stream: Stream, shard: Shard) -> ShardState:
        log = _address(stream, shard)
        extent = await self._executor.with_repair(log, lambda: self._hot.extent(log))
        start = extent.start
        if self._archive is not None:
            start = await self._archive.start(stream, shard, start)
        return ShardState(shard, start, extent.next, extent.bytes, extent.fenced, stream.stream_id)


def _address(stream: Stream, shard: Shard) -> LogAddress:
    return LogAddress(stream.name.namespace, shard.log_id, stream.is_view)


def _to_read(stream: Stream, positions: Mapping[int, int]) -> dict[int, int | None]:
    ahead = read_frontier(stream, positions)
    return {index: offset for index, offset in ahead.items() if offset != FULLY_READ}


def _has_unknown_children(stream: Stream, stream_read: StreamRead) -> bool:
    """Return whether a shard ended whose children this definition does not have."""
    return any(
        needs_refresh(stream, {child.index: 0})
        for read in stream_read.shards
        for child in read.children
    )


def _among(stream: Stream, positions: Mapping[int, int | None]) -> list[Shard]:
    """Return the shards of these positions that still exist.

    A shard that is opening can be read: its parents may be finished.
    """
    return [shard for shard in (*stream.shards, *stream.opening) if shard.index in positions]


def _has_news(read: ShardRead) -> bool:
    return bool(read.records) or read.gap is not None


def _gone(shard: int, offset: int) -> ShardRead:
    """Return the read of a position in an expired shard: how much was left is unknown."""
    return ShardRead(shard, (), offset, offset, offset, 0, Gap(offset, offset, GapReason.EXPIRED))


def _from(offset: int | None) -> ReadFrom:
    return ReadFrom(time_ms=0) if offset is None else ReadFrom(offset=offset)


def _read_request(where: ReadFrom, size: _ReadSize) -> ReadRequest:
    match where:
        case ReadFrom(offset=int(offset), time_ms=None, tail=None):
            return ReadRequest("offset", offset, *size)
        case ReadFrom(offset=None, time_ms=int(time_ms), tail=None):
            return ReadRequest("time", time_ms, *size)
        case ReadFrom(offset=None, time_ms=None, tail=int(tail)):
            return ReadRequest("tail", tail, *size)
        case _:
            raise ValidationFailed.at(
                "/offset", "Specify exactly one of offset, time and tail", "exclusive"
            )


def _shard_read(stream: Stream, shard: Shard, tier_read: TierRead) -> ShardRead:
    """Build a shard's read; a gap behind records ends it and is reported by the next read."""
    if tier_read.start_at < tier_read.start:
        raise OffsetExpired(
            f"The shard's oldest offset is {tier_read.start}.",
            earliest_offset=tier_read.start,
            next_offset=tier_read.next,
        )
    if tier_read.start_at > tier_read.next:
        raise OffsetOutOfRange(
            f"The shard's next offset is {tier_read.next}.", next_offset=tier_read.next
        )
    records = _unbroken(tier_read.records)
    first = records[0].offset if records else tier_read.end
    gap = Gap(tier_read.start_at, first, tier_read.reason) if first > tier_read.start_at else None
    next_offset = records[-1].offset + 1 if records else tier_read.end
    behind_ms = (
        tier_read.now_ms - records[-1].arrival_ms if records and next_offset < tier_read.next else 0
    )
    ended = bool(tier_read.children) and next_offset == tier_read.next
    return ShardRead(
        shard.index,
        records,
        next_offset,
        tier_read.start,
        tier_read.next,
        behind_ms,
        gap,
        ended,
        (stream.children_of(shard.index) or tier_read.children) if ended else (),
        tier_read.tier,
        stream.stream_id,
    )


def _unbroken(records: Sequence[LogRecord]) -> Sequence[LogRecord]:
    """Return the records up to the first hole between two of them."""
    if not records or records[-1].offset - records[0].offset == len(records) - 1:
        return records
    count = next(
        nth for nth, record in enumerate(records) if record.offset != records[0].offset + nth
    )
    return records[:count]


def _with_expired(read: ShardRead, first: int) -> ShardRead:
    """Return a read behind expired records, with a gap from `first` on."""
    after = read.records[0].offset if read.records else read.next_offset
    return replace(read, gap=Gap(first, after, GapReason.EXPIRED))


def _seconds_from_now(wait_ms: int) -> float:
    return asyncio.get_running_loop().time() + wait_ms / limits.SECOND_MS
