"""Streams: append by key or to a shard, read a shard or all of them, split and merge shards."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from storage.archive.tiered_reader import TieredReader
from storage.archive.trim import HotTrimmer
from storage.catalog.catalog import Catalog
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import MillstreamError, OffsetOutOfRange, ValidationFailed
from storage.domain.limits import Limits
from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName
from storage.domain.streams.columnar_batch import Columns
from storage.domain.streams.idempotence import AppendCounts, SequencedBatch
from storage.domain.streams.load_scaling import Load, changes_for
from storage.domain.streams.stream import (
    UNCONDITIONAL,
    AppendCondition,
    Appended,
    AppendedRange,
    LogRecord,
    ReadFrom,
    Shard,
    ShardRead,
    ShardState,
    Stream,
    StreamMode,
    StreamRead,
)
from storage.log.provisioner import LogProvisioner
from storage.log.stream_executor import StreamExecutor
from storage.quotas.memory_guard import MemoryGuard
from storage.redis.keys import LogAddress
from storage.redis.streams.idempotence import HotRising
from storage.redis.streams.logs import HotLogs
from storage.redis.transport.wakeups import Wakeups
from storage.streams.append import Appender
from storage.streams.append_rules import OWN_HEADERS
from storage.streams.columnar_append import ColumnarAppender
from storage.streams.idempotent_append import IdempotentAppender
from storage.streams.read import Reading
from storage.streams.reshard import Resharder

T = TypeVar("T")


class Streams:
    """The streams of a deployment. Every verb raises StreamNotFound for a stream that is not there."""

    def __init__(
        self,
        hot: HotLogs,
        rising: HotRising,
        catalog: Catalog,
        keeper: LogProvisioner,
        resharder: Resharder,
        retention: HotTrimmer,
        wakeups: Wakeups,
        clock: Clock,
        known: Limits,
        room: MemoryGuard,
        archive: TieredReader | None = None,
    ) -> None:
        self._hot = hot
        self._catalog = catalog
        self._keeper = keeper
        self._resharder = resharder
        self._retention = retention
        self._clock = clock
        self._on_stream = StreamExecutor(catalog, keeper)
        self._appending = Appender(hot, self._on_stream, keeper, resharder, clock, known, room)
        self._bulk = ColumnarAppender(self._appending, self._on_stream)
        self._rising = IdempotentAppender(
            rising, self._appending, self._on_stream, resharder, clock
        )
        self._archive = archive
        self._reading = Reading(hot, self._on_stream, resharder, wakeups, clock, archive)

    # Append

    async def append(
        self, name: StreamName, records: Sequence[Record], *, idempotency_key: str = ""
    ) -> list[Appended | MillstreamError]:
        """Append each record to the shard that takes its key; one answer for each, in order.

        Records of one shard are appended together or not at all; shards succeed or fail on their own.
        Records without a key go to one shard, chosen for the call. A repeat with the same idempotency key
        within ten minutes adds nothing. A record's `hash_key` is its place on the ring instead of its key's.
        A shard that is split or merged meanwhile is no error: the records
        go to its children. Raises BacklogFull and QuotaExceeded where the store or the namespace has no room, as all
        that append do.
        """
        return await self._appending.append(name, records, idempotency_key)

    def append_columns(
        self, name: StreamName, columns: Columns, *, idempotency_key: str = ""
    ) -> Coroutine[Any, Any, list[AppendedRange]]:
        """As append, of many records without headers that come column by column; the answer is in ranges.

        Each range is of records that lie in one shard one after another, in their order. The columns are packed before
        anything is waited for: who lets go of them spares the memory, and the time, of keeping them.
        """
        return self._bulk.append(name, columns, idempotency_key)

    async def append_rising(
        self,
        name: StreamName,
        producer_id: str,
        sequences: Sequence[int],
        records: Sequence[Record],
        *,
        own: frozenset[str] = OWN_HEADERS,
    ) -> AppendCounts:
        """Append what one rising producer sends: each record once, however often and in what portions it comes.

        `sequences` rise from record to record, and from call to call. A call is repeated until it has
        answered, before the next one begins; `storage.streams.idempotent_append` says what else is asked of whoever sends. A
        record without a key has a place of its own. `own` are the reserved headers that records may have.
        Raises what `append` does, of any shard, and TooManyProducers; ProducerFenced once it was forgotten.
        """
        rise = SequencedBatch.of(producer_id, sequences)
        return await self._rising.append(name, rise, records, own)

    async def append_rising_together(
        self,
        name: StreamName,
        rise: SequencedBatch,
        records: Sequence[Record],
        *,
        own: frozenset[str] = OWN_HEADERS,
    ) -> AppendCounts:
        """As append_rising, of several producers whose records keep the order in which they are given here."""
        return await self._rising.append(name, rise, records, own)

    async def forget_rising(self, name: StreamName, producer_ids: Sequence[str]) -> None:
        """Let go of rising producers that have nothing more to send. Their ids are not used again: for a day
        whatever still comes of them is refused. Nothing happens where there is no such stream."""
        await self._rising.forget(name, producer_ids)

    async def append_to_shard(
        self,
        name: StreamName,
        shard: int,
        records: Sequence[Record],
        condition: AppendCondition = UNCONDITIONAL,
    ) -> list[Appended]:
        """Append to one shard, all records or none.

        Raises ShardNotFound, and what the condition may meet: ProducerFenced, SequenceOutOfOrder,
        DuplicateForgotten, OffsetMismatch, FenceMismatch; ShardClosed, whose facts name the children.
        """
        return await self._appending.append_to_shard(name, shard, records, condition)

    async def set_fence(
        self, name: StreamName, shard: int, token: str, expected: str | None = None
    ) -> None:
        """Give a shard to one writer: from now on appends must carry `token`, whatever their address; an
        empty one gives it back to all. With `expected`, only if that is the token now, empty for none.

        The children of a shard take its fence; one of two parents, that of the first that has one. Raises
        ShardNotFound, ShardClosed, FenceMismatch when another token stands.
        """
        for pointer, given in (("/token", token), ("/expected", expected or "")):
            if len(given) > limits.FENCE_CHARACTERS_MAX:
                detail = f"A token has at most {limits.FENCE_CHARACTERS_MAX} characters"
                raise ValidationFailed.at(pointer, detail, "too_long")
        await self._on_shard(
            name,
            shard,
            lambda at: self._hot.set_fence(at, token, expected, self._keeper.store_epoch),
        )

    # Read

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
        gives the same records. The end of a closed shard is told at once, with its children.

        Raises OffsetExpired, OffsetOutOfRange, ShardNotFound.
        """
        return await self._reading.read_shard(name, shard, where, records_max, bytes_max, wait_ms)

    async def read(
        self,
        name: StreamName,
        positions: Mapping[int, int],
        *,
        records_max: int = limits.READ_RECORDS_MAX,
        bytes_max: int = limits.READ_BYTES_MAX,
        wait_ms: int = 0,
    ) -> StreamRead:
        """Read all shards of a stream, from the positions that the last read gave, or else from the oldest
        records; children once their parents have been read to the end, so that each key keeps its order.

        What expired or was never filled is reported as a gap, and reading goes on behind it.
        """
        return await self._reading.read(name, positions, records_max, bytes_max, wait_ms)

    async def latest_of_key(self, name: StreamName, key: str) -> tuple[int, LogRecord]:
        """The newest record of a partition key, and the shard it is in.

        Finds records that were routed by their key since the stream has a key index, not those with a
        `hash_key` or on a shard's address that lie elsewhere. Raises RecordNotFound, and ValidationFailed
        when the stream has no index.
        """
        return await self._reading.latest_of_key(name, key)

    async def read_shards(
        self,
        name: StreamName,
        positions: Mapping[int, int | None],
        *,
        records_max: int = limits.READ_RECORDS_MAX,
        bytes_max: int = limits.READ_BYTES_MAX,
        wait_ms: int = 0,
    ) -> list[ShardRead]:
        """Read these shards and no others, each from its position, or from its oldest record for None.

        What expired is reported as a gap; a shard that is gone is left out. Waits until one of them has
        something to tell, which the end of a closed shard is too. Raises OffsetOutOfRange.
        """
        return await self._reading.read_shards(name, positions, records_max, bytes_max, wait_ms)

    async def shards(self, name: StreamName) -> list[ShardState]:
        """The shards of a stream, open and closed, by index, each with the extent of its log."""
        return await self._reading.shards(name)

    # Reshard

    async def split(self, name: StreamName, shard: int, at_hash_key: int) -> Stream:
        """Close a shard and open two in its place; keys from `at_hash_key` on go to the second.

        Writing and reading go on meanwhile. Gives the stream with its new shards. Raises ShardNotFound;
        ValidationFailed for a shard that is closed, for a key that is not above the shard's first plus one
        and below its last, and beyond SHARDS_MAX open shards; StreamBusy while another reshard of the
        stream is under way; OutcomeUnknown when it has begun and a sweep must finish it.
        """
        return await self._resharder.split(name, shard, at_hash_key)

    async def merge(self, name: StreamName, first: int, second: int) -> Stream:
        """Close two neighbours on the ring, in either order, and open one in their place; `first` is its
        first parent.

        As split; ValidationFailed also for shards that are not neighbours.
        """
        return await self._resharder.merge(name, first, second)

    async def set_shard_count(self, name: StreamName, count: int) -> Stream:
        """Split and merge until the ring is in `count` equal ranges, each one open shard.

        A shard has at most two parents, so this takes several rounds, whose shards in between are closed
        again at once. As split, but for ShardNotFound; ValidationFailed unless 1 <= count <= SHARDS_MAX.
        """
        return await self._resharder.set_count(name, count)

    async def scale(self, name: StreamName) -> int:
        """For the sweep: measure an on-demand stream, and split and merge as its load calls for.

        Gives the number of changes; 0 for a provisioned stream. Raises StreamBusy while a process reshards it.
        """
        stream = await self._catalog.fresh_stream(name)
        if stream.spec.mode is not StreamMode.ON_DEMAND:
            return 0
        loads = await asyncio.gather(*(self._load(stream, shard) for shard in stream.open_shards))
        indexes = [shard.index for shard in stream.open_shards]
        known = {index: load for index, load in zip(indexes, loads, strict=True) if load}
        changes = changes_for(stream, known)
        if changes:
            await self._resharder.apply(name, changes)
        return len(changes)

    async def _load(self, stream: Stream, shard: Shard) -> Load | None:
        now = self._clock.script_time()
        return await self._on_shard(
            stream.name, shard.index, lambda at: self._hot.sample_load(at, now)
        )

    async def finish_reshard(self, name: StreamName) -> bool:
        """For the sweep: do what a crash left of a reshard; whether there was anything.

        Raises StreamBusy while a process is at it.
        """
        return await self._resharder.finish(name)

    # Retention

    async def trim(self, name: StreamName, entries_max: int) -> int:
        """One round of retention over all shards, for the sweep; gives the entries freed."""
        return await self._retention.trim(await self._catalog.stream(name), entries_max)

    async def tidy_keys(self, name: StreamName) -> int:
        """One round over the key indexes of a stream, for the sweep: expired keys go; gives their number."""
        stream = await self._catalog.stream(name)
        if not stream.spec.key_index:
            return 0
        tidied = 0
        for shard in stream.shards:
            tidied += await self._on_shard(
                name, shard.index, lambda at: self._hot.tidy_keys(at, limits.TIDY_KEYS_PER_CALL)
            )
        return tidied

    async def truncate(self, name: StreamName, shard: int, before: int) -> int:
        """Forget a shard's records before an offset, for good; gives the shard's oldest readable offset.

        Raises ShardNotFound, OffsetOutOfRange when the offset lies beyond the shard's end.
        """
        if before < 0:
            raise ValidationFailed.at("/before", "must be at least 0", "out_of_range")
        cut = partial(
            self._hot.truncate, before=before, entries_max=limits.TRUNCATE_ENTRIES_PER_CALL
        )
        archive = self._archive
        if archive is None:
            return await self._on_shard(name, shard, cut)
        stream = await self._on_stream.knowing(await self._on_stream.writable(name), shard)
        of = stream.shard(shard)
        await self._on_shard(name, shard, partial(self._check_within, before=before))
        # First there, so that what has left the hot store is not read from the archive; and again if the archive has
        # begun with the shard meanwhile.
        begun = await archive.raise_start(stream, of, before)
        start = await self._on_shard(name, shard, cut)
        if not begun:
            await archive.raise_start(stream, of, before)
        return await archive.start(stream, of, start)

    async def _check_within(self, at: LogAddress, before: int) -> None:
        """Raises OffsetOutOfRange."""
        end = (await self._hot.extent(at)).next
        if before > end:
            raise OffsetOutOfRange(f"The shard's next offset is {end}.", next_offset=end)

    async def _on_shard(
        self, name: StreamName, shard: int, work: Callable[[LogAddress], Awaitable[T]]
    ) -> T:
        async def on(stream: Stream) -> T:
            at = LogAddress(stream.name.namespace, stream.shard(shard).log_id)
            return await self._on_stream.mended(at, lambda: work(at))

        stream = await self._on_stream.knowing(await self._on_stream.writable(name), shard)
        return await self._on_stream.do(stream, on)

    async def expire_shards(self, name: StreamName) -> int:
        """Let go of closed shards of which neither tier has anything any more, parents before children, for the sweep.

        A shard stays as long as it may be asked whether it knows a repeated append, and for readers that are in it a day,
        or its stream's retention if that is shorter. Gives their number.
        """
        stream = await self._catalog.fresh_stream(name)
        expired: set[int] = set()
        for shard in stream.shards:
            parents = {parent.index for parent in stream.parents_of(shard)}
            if parents <= expired and await self._is_over(stream, shard):
                expired.add(shard.index)
        if expired:
            await self._catalog.expire_shards(stream, expired)
        return len(expired)

    async def _is_over(self, stream: Stream, shard: Shard) -> bool:
        closed_for_ms = self._clock.now_ms() - (shard.closed_at_ms or 0)
        readers_ms = min(stream.spec.retention_ms or limits.DAY_MS, limits.CLOSED_SHARD_MS_MIN)
        if shard.is_open or closed_for_ms < max(readers_ms, limits.KEYS_ASKED_MS):
            return False
        at = LogAddress(stream.name.namespace, shard.log_id)
        extent = await self._on_stream.do(
            stream, lambda _: self._on_stream.mended(at, lambda: self._hot.extent(at))
        )
        rising, over = await self._rising.known(at)
        asked = extent.knows_producers and closed_for_ms < limits.PRODUCER_IDLE_MS
        feared = over and closed_for_ms < limits.RISING_OVER_MS
        if extent.start != extent.next or asked or rising or feared:
            return False
        return self._archive is None or not await self._archive.holds(stream, shard)
