"""Stream engine: append by key or to a shard, split and merge, trim and truncate."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

import attrs

from storage.archive.tiered_reader import TieredReader
from storage.archive.trim import HotTrimmer
from storage.catalog.catalog import Catalog
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import MillstreamError, OffsetOutOfRange, ValidationFailed
from storage.domain.log.address import LogAddress
from storage.domain.log.record_batch import Headers, Record
from storage.domain.names import LogId, StreamName, check_fence
from storage.domain.streams.columnar_batch import Columns
from storage.domain.streams.idempotence import AppendCounts, SequencedBatch
from storage.domain.streams.load_scaler import Load, changes_for
from storage.domain.streams.stream import (
    UNCONDITIONAL,
    AppendCondition,
    Appended,
    AppendedRange,
    Shard,
    Stream,
    StreamMode,
)
from storage.hot_store.log_store import LogStore
from storage.log.provisioner import LogProvisioner
from storage.log.stream_executor import StreamExecutor
from storage.streams.append import Appender
from storage.streams.append_rules import OWN_HEADERS
from storage.streams.columnar_append import ColumnarAppender
from storage.streams.idempotent_append import IdempotentAppender
from storage.streams.reshard import Resharder

T = TypeVar("T")


@attrs.define(eq=False, slots=False, kw_only=True)
class Streams:
    """The streams of a deployment.

    Every verb raises StreamNotFound for a stream that does not exist.
    """

    _hot: LogStore
    _executor: StreamExecutor
    _catalog: Catalog
    _provisioner: LogProvisioner
    _trimmer: HotTrimmer
    _clock: Clock
    _archive: TieredReader | None
    resharder: Resharder
    _appender: Appender
    _columnar_appender: ColumnarAppender
    _idempotent_appender: IdempotentAppender

    # Append

    async def append(
        self,
        name: StreamName,
        records: Sequence[Record],
        *,
        idempotency_key: str = "",
        publishes: bool = False,
        stream_id: LogId | None = None,
        fence: str = "",
        dedup_keys: Sequence[str] = (),
    ) -> list[Appended | MillstreamError]:
        """Append each record to the shard that takes its key; return one result each, in order.

        Records of one shard are appended together or not at all; shards succeed or fail independently.
        Records without a key go to one shard, chosen for the call. A repeat with the same idempotency key
        within ten minutes adds nothing. A record's `hash_key` replaces the hash of its key. `publishes`: the stream is a topic,
        and the records are published ones. `stream_id` and `fence` as for `append_idempotent`; a shard with another fence answers
        FenceMismatch. `dedup_keys`: one for each record; a record is a duplicate if one with its key was added within five minutes.
        A shard that is split or merged during the call is no error: the records go to its children. Raises BacklogFull and
        QuotaExceeded if the store or the namespace has no capacity left, as all verbs that append do.
        """
        return await self._appender.append(
            name,
            records,
            idempotency_key,
            publishes=publishes,
            stream_id=stream_id,
            fence=fence,
            dedup_keys=dedup_keys,
        )

    def append_columns(
        self, name: StreamName, columns: Columns, *, idempotency_key: str = ""
    ) -> Coroutine[Any, Any, list[AppendedRange]]:
        """Append many records without headers, given as columns; return the results as ranges.

        Otherwise like `append`. Each range holds records that lie in one shard consecutively, in their order. The columns are
        packed before the call waits for the append: a caller that drops its reference saves the memory, and the time, of
        keeping them.
        """
        return self._columnar_appender.append(name, columns, idempotency_key)

    async def append_idempotent(
        self,
        name: StreamName,
        producer_id: str,
        sequences: Sequence[int],
        records: Sequence[Record],
        *,
        own: frozenset[str] = OWN_HEADERS,
        stream_id: LogId | None = None,
        fence: str = "",
    ) -> AppendCounts:
        """Append the records of a monotonic producer, each once however often it is sent.

        `sequences` increase from record to record, and from call to call; how they are split into calls does not matter. A
        call is repeated until it has succeeded before the next one begins; `storage.streams.idempotent_append` has the other
        rules for senders. A record without a key gets a hash key of its own. `own` are the reserved headers that records may
        have. With `stream_id`, only the stream of that id is appended to: a sender's position is of no use for another one. `fence`
        is the fencing token of the shards. Raises what `append` does, for any shard, and TooManyProducers, FenceMismatch;
        ProducerFenced after `retire_writers`; StreamRecreated.
        """
        batch = SequencedBatch.of(producer_id, sequences)
        return await self._idempotent_appender.append(
            name, batch, records, stream_id, own=own, fence=fence
        )

    async def append_idempotent_batch(
        self,
        name: StreamName,
        batch: SequencedBatch,
        records: Sequence[Record],
        *,
        publishes: bool = False,
        stream_id: LogId | None = None,
        fence: str = "",
    ) -> AppendCounts:
        """Append the records of several monotonic producers, in the order given here.

        Otherwise like `append_idempotent`; `publishes` as for `append`.
        """
        return await self._idempotent_appender.append(
            name, batch, records, stream_id, fence=fence, publishes=publishes
        )

    async def append_idempotent_columns(
        self,
        name: StreamName,
        batch: SequencedBatch,
        columns: Columns,
        *,
        origin: Sequence[Headers] = (),
        hash_keys: Sequence[int | None] = (),
    ) -> AppendCounts:
        """Append records as `append_idempotent_batch` does, given as columns.

        Up to IDEMPOTENT_COLUMNS_MAX of them. `origin` are headers of Millstream's own for each record, behind its others; they
        do not count towards its size. `hash_keys` replace those of the keys.
        """
        return await self._idempotent_appender.append_columns(
            name, batch, columns, origin=origin, hash_keys=hash_keys
        )

    async def retire_writers(self, name: StreamName, producer_ids: Sequence[str]) -> None:
        """Retire monotonic producers that have nothing more to send.

        Their ids are not used again: for a day, anything they still send is rejected. Does nothing if the stream does not
        exist.
        """
        await self._idempotent_appender.retire(name, producer_ids)

    async def append_to_shard(
        self,
        name: StreamName,
        shard: int,
        records: Sequence[Record],
        condition: AppendCondition = UNCONDITIONAL,
    ) -> list[Appended]:
        """Append to one shard, all records or none.

        Raises ShardNotFound, and the errors of the condition: ProducerFenced, SequenceOutOfOrder,
        DuplicateForgotten, OffsetMismatch, FenceMismatch; ShardClosed, whose facts name the children.
        """
        return await self._appender.append_to_shard(name, shard, records, condition)

    async def set_fence(
        self, name: StreamName, shard: int, token: str, expected: str | None = None
    ) -> None:
        """Fence a shard: appends must carry `token` from now on; an empty token removes the fence.

        Gives the shard to one writer, however an append addresses it. With `expected`, only if that is the current token;
        empty for none.

        The children of a shard inherit its fence; a child of two parents, that of the first that has one. Raises
        ShardNotFound, ShardClosed, and FenceMismatch if another token is set.
        """
        check_fence(token, expected)
        await self._on_shard(
            name,
            shard,
            lambda log: self._hot.set_fence(log, token, expected, self._provisioner.store_epoch),
        )

    # Reshard

    async def scale(self, name: StreamName) -> int:
        """Measure an on-demand stream, and split and merge as its load requires; for the sweeper.

        Returns the number of changes; 0 for a provisioned stream. Raises StreamBusy while a process reshards it.
        """
        stream = await self._catalog.fresh_stream(name)
        if stream.spec.mode is not StreamMode.ON_DEMAND:
            return 0
        loads = await asyncio.gather(*(self._load(stream, shard) for shard in stream.open_shards))
        indexes = [shard.index for shard in stream.open_shards]
        known_loads = {index: load for index, load in zip(indexes, loads, strict=True) if load}
        changes = changes_for(stream, known_loads)
        if changes:
            await self.resharder.apply(name, changes)
        return len(changes)

    async def _load(self, stream: Stream, shard: Shard) -> Load | None:
        now = self._clock.script_time()
        return await self._on_shard(
            stream.name, shard.index, lambda log: self._hot.sample_load(log, now)
        )

    # Retention

    async def trim(
        self, name: StreamName, entries_max: int, definition: Stream | None = None
    ) -> int:
        """Run one round of retention over all shards; return the number of entries freed.

        For the sweeper, which may know the definition while Postgres is unreachable.
        """
        stream = definition or await self._catalog.stream(name)
        return await self._trimmer.trim(stream, entries_max)

    async def sweep_key_index(self, stream: Stream) -> int:
        """Delete expired keys from a stream's key indexes; return their number.

        One round, for the sweeper, which knows the definition while Postgres is unreachable.
        """

        async def sweep(current: Stream, index: int) -> int:
            shard = current.shard(index)
            log = LogAddress(current.name.namespace, shard.log_id)
            return await self._executor.with_repair(
                log, lambda: self._hot.sweep_key_index(log, limits.KEY_INDEX_SWEEP_PER_CALL)
            )

        return sum(
            [
                await self._executor.run(stream, partial(sweep, index=shard.index))
                for shard in stream.shards
            ]
        )

    async def truncate(
        self, name: StreamName, shard: int, before: int, stream_id: LogId | None = None
    ) -> int:
        """Delete a shard's records before an offset permanently; return its oldest offset.

        The result is the oldest readable offset. Raises ShardNotFound, OffsetOutOfRange when the offset lies beyond the shard's
        end, StreamRecreated.
        """
        if before < 0:
            raise ValidationFailed.at("/before", "must be at least 0", "out_of_range")
        cut = partial(
            self._hot.truncate, before=before, entries_max=limits.TRUNCATE_ENTRIES_PER_CALL
        )
        archive = self._archive
        if archive is None:
            return await self._on_shard(name, shard, cut, stream_id)
        stream = await self._executor.writable(name, stream_id)
        stream = await self._executor.refresh_for_shard(stream, shard, stream_id)
        of, stream_id = stream.shard(shard), stream.stream_id
        await self._on_shard(name, shard, partial(self._check_within, before=before), stream_id)
        # The archive first, so that what has left the hot store is not read from there; and again if the archive has
        # begun with the shard in the meantime.
        begun = await archive.raise_start(stream, of, before)
        start = await self._on_shard(name, shard, cut, stream_id)
        if not begun:
            await archive.raise_start(stream, of, before)
        return await archive.start(stream, of, start)

    async def _check_within(self, log: LogAddress, before: int) -> None:
        """Raise OffsetOutOfRange if `before` lies beyond the log's end."""
        end = (await self._hot.extent(log)).next
        if before > end:
            raise OffsetOutOfRange(f"The shard's next offset is {end}.", next_offset=end)

    async def _on_shard(
        self,
        name: StreamName,
        shard: int,
        work: Callable[[LogAddress], Awaitable[T]],
        stream_id: LogId | None = None,
    ) -> T:
        async def on(stream: Stream) -> T:
            log = LogAddress(stream.name.namespace, stream.shard(shard).log_id)
            return await self._executor.with_repair(log, lambda: work(log))

        stream = await self._executor.writable(name, stream_id)
        stream = await self._executor.refresh_for_shard(stream, shard, stream_id)
        return await self._executor.run(stream, on, stream_id)

    async def expire_shards(self, name: StreamName) -> int:
        """Delete closed shards that no longer have records in either tier; return their number.

        For the sweeper; parents before children. A shard is kept as long as it may be asked whether it knows a repeated
        append, and, for readers that are still in it, for a day, or its stream's retention if that is shorter.
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
        if shard.is_open or closed_for_ms < max(readers_ms, limits.IDEMPOTENCY_LOOKUP_MS):
            return False
        log = LogAddress(stream.name.namespace, shard.log_id)
        extent = await self._executor.run(
            stream, lambda _: self._executor.with_repair(log, lambda: self._hot.extent(log))
        )
        knows_writers, remembers_retired = await self._idempotent_appender.writer_state(log)
        may_know_batches = extent.knows_producers and closed_for_ms < limits.PRODUCER_IDLE_MS
        may_have_stragglers = (
            remembers_retired and closed_for_ms < limits.MONOTONIC_WRITERS_RETIRED_MS
        )
        if extent.start != extent.next or may_know_batches or knows_writers or may_have_stragglers:
            return False
        return self._archive is None or not await self._archive.holds(stream, shard)
