"""Loads of a stream's open shards, measured from their recent records when somebody asks.

Appending pays nothing for it: the offset of a minute ago gives the rate, and records read at even distances since then
are the sample of the busiest shards.
"""

from functools import partial

import attrs

from storage.concurrency.tasks import gather_all, in_batches
from storage.concurrency.ttl_cache import TtlCache
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.names import StreamName
from storage.domain.streams.shard_load import ShardLoad, shard_load
from storage.domain.streams.stream import LogRecord, ReadFrom, Shard, Stream
from storage.log.stream_executor import StreamExecutor
from storage.streams.read import RecordReader


@attrs.define(frozen=True)
class _Recent:
    """Offsets of a shard within the window, and its records per second."""

    shard: Shard
    first: int
    next: int
    records_per_second: float


class ShardLoads:
    """Loads of shards, cached for a moment."""

    def __init__(self, reader: RecordReader, executor: StreamExecutor, clock: Clock) -> None:
        self._reader = reader
        self._executor = executor
        self._clock = clock
        self._cache: TtlCache[list[ShardLoad]] = TtlCache(limits.SHARD_LOAD_CACHE_MS, clock)

    async def of_stream(self, name: StreamName) -> list[ShardLoad]:
        """Return the loads of the open shards over the last minute, by index.

        Keys are sampled in the busiest SHARD_LOAD_SAMPLED_MAX shards. Raises StreamNotFound.
        """
        return await self._cache.get(name, partial(self._measure, name))

    async def _measure(self, name: StreamName) -> list[ShardLoad]:
        stream = await self._executor.current(name)
        recent = await in_batches(
            stream.open_shards, partial(self._recent, stream), limits.SHARD_LOAD_CONCURRENCY_MAX
        )
        recent.sort(key=lambda shard: shard.records_per_second, reverse=True)
        sampled = [shard for shard in recent if shard.next > shard.first]
        sampled = sampled[: limits.SHARD_LOAD_SAMPLED_MAX]
        loads = [
            shard_load(shard.shard, shard.records_per_second, await self._sample(stream, shard))
            for shard in sampled
        ]
        loads += [
            shard_load(shard.shard, shard.records_per_second, ())
            for shard in recent
            if shard not in sampled
        ]
        return sorted(loads, key=lambda load: load.shard)

    async def _recent(self, stream: Stream, shard: Shard) -> _Recent:
        now_ms = self._clock.now_ms()
        read = await self._reader.read_shard(
            stream.name,
            shard.index,
            ReadFrom(time_ms=max(0, now_ms - limits.SHARD_LOAD_WINDOW_MS)),
            records_max=1,
            bytes_max=1,
            stream_id=stream.stream_id,
        )
        if not read.records:
            return _Recent(shard, read.tip, read.tip, 0.0)
        first = read.records[0].offset
        open_ms = max(limits.SECOND_MS, now_ms - shard.opened_at_ms)
        seconds = min(limits.SHARD_LOAD_WINDOW_MS, open_ms) / limits.SECOND_MS
        return _Recent(shard, first, read.tip, (read.tip - first) / seconds)

    async def _sample(self, stream: Stream, recent: _Recent) -> list[LogRecord]:
        """Read records at even distances."""
        step = max(
            limits.SHARD_LOAD_READ_RECORDS,
            (recent.next - recent.first) // limits.SHARD_LOAD_READS,
        )
        reads = await gather_all(
            self._reader.read_shard(
                stream.name,
                recent.shard.index,
                ReadFrom(offset=offset),
                records_max=limits.SHARD_LOAD_READ_RECORDS,
                bytes_max=limits.SHARD_LOAD_READ_BYTES,
                stream_id=stream.stream_id,
                skip_expired=True,
            )
            for offset in range(recent.first, recent.next, step)[: limits.SHARD_LOAD_READS]
        )
        return [record for read in reads for record in read.records]
